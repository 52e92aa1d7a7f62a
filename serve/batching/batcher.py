"""The front of a backend: admission, deadlines, dynamic batching, draining."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ragplane.core.errors import DeadlineError, OverloadedError, UnavailableError
from serve.backend import Backend
from serve.batching.queue import WorkQueue
from serve.batching.work import BatchReport, Done, T, Waiting, Work
from serve.batching.worker import Worker

_MIN_RETRY_AFTER_S = 1.0


class Batcher:
    """Batches the works of concurrent requests onto one backend."""

    def __init__(
        self,
        backend: Backend,
        *,
        max_requests: int,
        budget_tokens: int,
        restart_after_s: float = 1.0,
    ) -> None:
        """Start the worker thread.

        `max_requests` may be open at once. A micro-batch costs `budget_tokens` padded tokens at
        most, or is one longer input.
        """
        self._queue = WorkQueue(budget_tokens=budget_tokens)
        self._worker = Worker(backend, self._queue, restart_after_s=restart_after_s)
        self._max_requests = max_requests
        self._open_requests = 0
        self._draining = False
        self._drained = asyncio.Event()

    @property
    def healthy(self) -> bool:
        """False while the worker thread is dead or stuck."""
        return self._worker.healthy

    @property
    def accepts(self) -> bool:
        """False while unhealthy or draining."""
        return self.healthy and not self._draining

    @property
    def queue_size(self) -> int:
        """Inputs that wait."""
        return len(self._queue)

    def listen(self, on_batch: Callable[[BatchReport], None]) -> None:
        """Call `on_batch` on the worker thread for each batch, before its results are handed out.

        One listener at a time; an error it raises is logged.
        """
        self._worker.on_batch = on_batch

    @contextlib.contextmanager
    def admit(self) -> Iterator[None]:
        """A permit for one whole request, taken before any of its work is done.

        Raises OverloadedError at `max_requests`, UnavailableError while draining or unhealthy.
        """
        if self._draining:
            raise UnavailableError("the server is draining")
        if not self.healthy:
            raise UnavailableError("the model worker is down")
        if self._open_requests >= self._max_requests:
            message = f"{self._max_requests} requests are open, which is the limit"
            raise OverloadedError(message, retry_after_s=self._retry_after_s())
        self._open_requests += 1
        try:
            yield
        finally:
            self._open_requests -= 1
            self._note_drained()

    async def run(
        self, works: Sequence[Work[T]], *, deadline_s: float | None = None
    ) -> list[Done[T]]:
        """Results in the order of `works`; the first that fails fails the call.

        `deadline_s` is on the `time.monotonic` clock. Raises DeadlineError when it cannot be met.
        Cancelling the call drops what has not run yet.
        """
        self._check_deadline(works, deadline_s)
        loop, now_s = asyncio.get_running_loop(), time.monotonic()
        items = [Waiting(work, loop.create_future(), now_s, deadline_s) for work in works]
        self._queue.put(items)
        try:
            return list(await asyncio.gather(*(item.future for item in items)))
        finally:
            for item in items:
                item.future.cancel()

    async def drain(self, timeout_s: float) -> None:
        """Refuse new requests and wait for the open ones, `timeout_s` at most."""
        self._draining = True
        self._note_drained()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._drained.wait(), timeout_s)

    async def aclose(self) -> None:
        """End the worker thread; what still waits fails with UnavailableError."""
        await asyncio.to_thread(self._worker.close)

    def _note_drained(self) -> None:
        if self._draining and self._open_requests == 0:
            self._drained.set()

    def _check_deadline(self, works: Sequence[Work[Any]], deadline_s: float | None) -> None:
        if deadline_s is None:
            return
        tokens = self._queue.tokens + sum(len(work.ids) for work in works)
        expected_s = self._worker.speed.seconds_for(tokens)
        left_s = deadline_s - time.monotonic()
        if expected_s > left_s:
            message = f"{expected_s * 1e3:.0f} ms are needed, {max(0.0, left_s) * 1e3:.0f} are left"
            raise DeadlineError(message, retry_after_s=self._retry_after_s())

    def _retry_after_s(self) -> float:
        """Until what waits now is done, at the measured speed."""
        return max(_MIN_RETRY_AFTER_S, self._worker.speed.seconds_for(self._queue.tokens))
