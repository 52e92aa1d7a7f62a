"""The front of a backend: admission, deadlines, dynamic batching, draining."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from ragplane.core.errors import DeadlineError, OverloadedError, UnavailableError
from serve.backends.base import Backend
from serve.batching.cost import CostModel, Speed
from serve.batching.fairness import Flow
from serve.batching.policy import admits, tokens_ahead
from serve.batching.queue import Limits, Scheduling, WorkQueue
from serve.batching.work import BatchReport, Done, Lane, T, Terms, Waiting, Work
from serve.batching.worker import Worker

_MIN_RETRY_AFTER_S = 1.0
_DEFAULT_TERMS = Terms()


class Batcher:
    """Batches the works of concurrent requests onto one backend."""

    def __init__(
        self,
        backend: Backend,
        *,
        max_requests: int,
        limits: Limits,
        cost: CostModel | None = None,
        speed: Speed | None = None,
        scheduling: Scheduling = "fair",
        restart_after_s: float = 1.0,
        stuck_after_s: float = 60.0,
    ) -> None:
        """Start the worker thread. `cost` and `speed` are what calibration measured.

        `max_requests` may be open at once; see `policy.admits` for the reserve above that.
        """
        cost = cost or CostModel(backend.packed)
        self._speed = speed or Speed()
        self._queue = WorkQueue(cost, limits, scheduling)
        self._worker = Worker(
            backend,
            self._queue,
            self._speed,
            restart_after_s=restart_after_s,
            stuck_after_s=stuck_after_s,
        )
        self._max_requests = max_requests
        self._open: Counter[Flow] = Counter()
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
    def queue_sizes(self) -> Mapping[Lane, int]:
        """Inputs that wait, by lane."""
        return self._queue.sizes

    @property
    def limits(self) -> Limits:
        """What a micro-batch may cost."""
        return self._queue.limits

    def listen(self, on_batch: Callable[[BatchReport], None]) -> None:
        """Call `on_batch` on the worker thread for each batch, before its results are handed out.

        One listener at a time; an error it raises is logged.
        """
        self._worker.on_batch = on_batch

    @contextlib.contextmanager
    def admit(self, terms: Terms = _DEFAULT_TERMS) -> Iterator[None]:
        """A permit for one whole request, taken before any of its work is done.

        Raises OverloadedError when too many are open, DeadlineError when what waits already takes
        too long, UnavailableError while draining or unhealthy.
        """
        if self._draining:
            raise UnavailableError("the server is draining")
        if not self.healthy:
            raise UnavailableError("the model worker is down")
        flow = Flow(terms.lane, terms.tenant)
        if not admits(self._open.total(), self._open[flow], self._max_requests):
            message = f"{self._open.total()} requests are open, and the limit is reached"
            raise OverloadedError(message, retry_after_s=self._retry_after_s(terms.lane))
        self._check_deadline(terms, 0.0)
        self._open[flow] += 1
        try:
            yield
        finally:
            self._open[flow] -= 1
            if not self._open[flow]:
                del self._open[flow]
            self._note_drained()

    async def run(self, works: Sequence[Work[T]], terms: Terms = _DEFAULT_TERMS) -> list[Done[T]]:
        """Results in the order of `works`; the first that fails fails the call.

        Raises DeadlineError when the deadline cannot be met, or has passed. Cancelling the call
        drops what has not run yet.
        """
        self._check_deadline(terms, self._queue.cost.tokens([len(w.input.ids) for w in works]))
        loop, now_s = asyncio.get_running_loop(), time.monotonic()
        items = [Waiting(work, loop.create_future(), now_s, terms) for work in works]
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
        if self._draining and not self._open:
            self._drained.set()

    def _check_deadline(self, terms: Terms, own_tokens: float) -> None:
        if terms.deadline_s is None:
            return
        expected_s = self._speed.seconds_for(self._ahead(terms.lane) + own_tokens)
        left_s = terms.deadline_s - time.monotonic()
        if expected_s >= left_s:
            message = f"{expected_s * 1e3:.0f} ms are needed, {max(0.0, left_s) * 1e3:.0f} are left"
            raise DeadlineError(message, retry_after_s=self._retry_after_s(terms.lane))

    def _retry_after_s(self, lane: Lane) -> float:
        """Until what runs before a new request is done, at the measured speed."""
        return max(_MIN_RETRY_AFTER_S, self._speed.seconds_for(self._ahead(lane)))

    def _ahead(self, lane: Lane) -> float:
        return tokens_ahead(lane, self._queue.tokens, self._worker.running_tokens)
