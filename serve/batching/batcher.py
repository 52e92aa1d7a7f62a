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
# About 50 bytes each in the queue: minutes of work for any backend, and never the whole memory.
MAX_WAITING_TOKENS = 8_000_000
_DEFAULT_TERMS = Terms()


class Batcher:
    """Batches the works of concurrent requests onto one backend."""

    def __init__(
        self,
        backend: Backend,
        *,
        max_requests: int,
        limits: Limits,
        cost: CostModel,
        speed: Speed,
        max_waiting_tokens: int = MAX_WAITING_TOKENS,
        scheduling: Scheduling = "fair",
        restart_after_s: float = 1.0,
        stuck_after_s: float = 60.0,
    ) -> None:
        """Start a worker thread for each stream of the backend.

        `cost` and `speed` (of one stream) are what calibration measured.

        `max_requests` may be open at once; see `policy.admits` for the reserve above that. What
        waits may cost `max_waiting_tokens`.
        """
        self._backend = backend
        self._speed = speed
        self._max_waiting_tokens = max_waiting_tokens
        self._queue = WorkQueue(cost, limits, scheduling)
        self._workers = [
            Worker(
                backend,
                self._queue,
                self._speed,
                restart_after_s=restart_after_s,
                stuck_after_s=stuck_after_s,
            )
            for _ in range(backend.streams)
        ]
        self._max_requests = max_requests
        self._open: Counter[Flow] = Counter()
        self._closed = False
        self._draining = False
        self._drained = asyncio.Event()

    @property
    def healthy(self) -> bool:
        """False while a worker thread is dead or stuck."""
        return all(worker.healthy for worker in self._workers)

    @property
    def accepts(self) -> bool:
        """False while unhealthy or draining, and once closed."""
        return self.healthy and not self._draining and not self._closed

    @property
    def queue_sizes(self) -> Mapping[Lane, int]:
        """Inputs that wait, by lane."""
        return self._queue.sizes

    def listen(self, on_batch: Callable[[BatchReport], None]) -> None:
        """Call `on_batch` on a worker thread for each batch, before its results are handed out.

        One listener at a time; an error it raises is logged.
        """
        for worker in self._workers:
            worker.on_batch = on_batch

    @contextlib.contextmanager
    def admit(self, terms: Terms = _DEFAULT_TERMS) -> Iterator[None]:
        """A permit for one whole request, taken before any of its work is done.

        Raises OverloadedError when too many are open, DeadlineError when what waits already takes
        too long, UnavailableError while draining or unhealthy.
        """
        if self._closed or self._draining:
            raise UnavailableError(f"the server is {'closed' if self._closed else 'draining'}")
        if not self.healthy:
            raise UnavailableError("the model worker is down")
        flow = self._queue.flow(terms.lane, terms.tenant)
        if not admits(self._open.total(), self._open[flow], self._max_requests):
            message = f"{self._open.total()} requests are open, and the limit is reached"
            raise OverloadedError(message, retry_after_s=self._retry_after_s(terms))
        self._check_room(terms, 0.0)
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

        Raises OverloadedError when too much waits, and DeadlineError when the deadline cannot be
        met, or passes. Cancelling the call drops what has not run yet.
        """
        loop, now_s, cost = asyncio.get_running_loop(), time.monotonic(), self._queue.cost
        items = [
            Waiting(work, cost.apart([len(work.input.ids)]), loop.create_future(), now_s, terms)
            for work in works
        ]
        own_tokens = sum(item.cost_tokens for item in items)
        self._check_room(terms, own_tokens)
        self._check_deadline(terms, own_tokens)
        self._queue.put(items)
        try:
            async with asyncio.timeout(terms.left_s()):
                return list(await asyncio.gather(*(item.future for item in items)))
        except TimeoutError as error:
            message, retry_after_s = "the deadline passed in the queue", self._retry_after_s(terms)
            raise DeadlineError(message, retry_after_s=retry_after_s) from error
        finally:
            self._give_up(items)

    async def drain(self, timeout_s: float) -> None:
        """Refuse new requests and wait for the open ones, `timeout_s` at most."""
        self._draining = True
        self._note_drained()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._drained.wait(), timeout_s)

    async def aclose(self) -> None:
        """End the worker threads and the backend; what still waits fails with UnavailableError."""
        self._closed = True
        await asyncio.gather(*(asyncio.to_thread(worker.close) for worker in self._workers))
        await asyncio.to_thread(self._backend.close)

    def _note_drained(self) -> None:
        if self._draining and not self._open:
            self._drained.set()

    def _give_up(self, items: Sequence[Waiting]) -> None:
        unfinished = [item for item in items if not item.future.done() or item.future.cancelled()]
        for item in unfinished:
            item.future.cancel()
        if unfinished:
            self._queue.discard(unfinished)

    def _check_room(self, terms: Terms, own_tokens: float) -> None:
        """A single request that is over the limit by itself runs when nothing else waits."""
        waiting = sum(self._queue.tokens.values())
        if waiting and waiting + own_tokens > self._max_waiting_tokens:
            message = f"inputs of {waiting:.0f} tokens wait, and the limit is reached"
            raise OverloadedError(message, retry_after_s=self._retry_after_s(terms))

    def _check_deadline(self, terms: Terms, own_tokens: float) -> None:
        left_s = terms.left_s()
        if left_s is None:
            return
        expected_s = self._expected_s(terms, own_tokens)
        if expected_s >= left_s:
            message = f"{expected_s * 1e3:.0f} ms are needed, {max(0.0, left_s) * 1e3:.0f} are left"
            raise DeadlineError(message, retry_after_s=self._retry_after_s(terms))

    def _retry_after_s(self, terms: Terms) -> float:
        """Until what runs before a new request is done, at the measured speed."""
        return max(_MIN_RETRY_AFTER_S, self._expected_s(terms, 0.0))

    def _expected_s(self, terms: Terms, own_tokens: float) -> float:
        flow = self._queue.flow(terms.lane, terms.tenant)
        ahead = tokens_ahead(flow, self._queue.tokens, own_tokens)
        running = sum(worker.running_tokens for worker in self._workers)
        return self._speed.seconds_for((running + ahead) / len(self._workers))
