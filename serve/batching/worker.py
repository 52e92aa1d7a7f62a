"""The one thread that runs a backend: takes micro-batches, survives bad inputs, restarts itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from ragplane.core.errors import DeadlineError, NonFiniteError, UnavailableError, describe
from serve.backends.base import Backend, ModelInput
from serve.batching.cost import Speed
from serve.batching.queue import Taken, WorkQueue
from serve.batching.work import BatchReport, Done, Waiting, settle
from serve.encoder import Vectors
from serve.pooling import require_finite

_WATCH_EVERY_S = 1.0
_CLOSE_WITHIN_S = 60.0
_log = structlog.get_logger()


class Worker:
    """Runs what the queue holds. `on_batch` hears of each batch before its results go out."""

    def __init__(
        self,
        backend: Backend,
        queue: WorkQueue,
        speed: Speed,
        *,
        restart_after_s: float,
        stuck_after_s: float,
    ) -> None:
        """Start the thread, and one that watches it.

        After a crash a new one starts `restart_after_s` later. A forward pass that takes over
        `stuck_after_s` cannot be ended, so whoever waits is told at once instead.
        """
        self.on_batch: Callable[[BatchReport], None] = _ignore
        self._backend = backend
        self._queue = queue
        self._speed = speed
        self._restart_after_s = restart_after_s
        self._stuck_after_s = stuck_after_s
        self._running: tuple[Waiting, ...] = ()
        self._running_tokens = 0.0
        self._busy_since_s: float | None = None
        self._alive = True
        self._closed = threading.Event()
        self._thread = self._start(after_s=0.0)
        threading.Thread(target=self._watch, name="worker-watchdog", daemon=True).start()

    @property
    def healthy(self) -> bool:
        """False while the thread is down or stuck in a forward pass."""
        return self._alive and not self._stuck

    @property
    def running_tokens(self) -> float:
        """Cost of the batch that runs now."""
        return self._running_tokens

    def close(self) -> None:
        """End after the micro-batch that runs now, and fail what waits. Blocks until then."""
        self._closed.set()
        self._queue.close()
        _fail(self._queue.clear(), UnavailableError("the encoder was closed"))
        self._thread.join(_CLOSE_WITHIN_S)

    @property
    def _stuck(self) -> bool:
        since_s = self._busy_since_s
        return since_s is not None and time.monotonic() - since_s > self._stuck_after_s

    def _start(self, *, after_s: float) -> threading.Thread:
        name = f"{self._backend.name}-worker"
        thread = threading.Thread(target=self._main, args=(after_s,), name=name, daemon=True)
        thread.start()
        return thread

    def _main(self, after_s: float) -> None:
        if self._closed.wait(after_s):
            return
        self._alive = True
        try:
            while (taken := self._queue.take()) is not None:
                self._run(taken)
        except BaseException as error:  # noqa: BLE001 - whatever ended it, nobody may wait for it
            self._restart(error)

    def _restart(self, error: BaseException) -> None:
        self._alive = False
        self._busy_since_s = None
        _log.error("model worker died", error=describe(error))
        failure = UnavailableError("the model worker died")
        failure.__cause__ = error
        _fail([*self._running, *self._queue.clear()], failure)
        self._thread = self._start(after_s=self._restart_after_s)

    def _watch(self) -> None:
        """Fail what waits for a stuck forward pass, for as long as it is stuck."""
        told = False
        while not self._closed.wait(min(_WATCH_EVERY_S, self._stuck_after_s)):
            if not self._stuck:
                told = False
                continue
            if not told:
                _log.error("model worker is stuck", after_s=self._stuck_after_s)
                told = True
            failure = UnavailableError("the model worker is stuck")
            _fail([*self._running, *self._queue.clear()], failure)

    def _run(self, taken: Taken) -> None:
        _fail(taken.expired, DeadlineError("the deadline passed in the queue"))
        self._running = tuple(item for group in taken.groups for item in group)
        self._running_tokens = taken.cost_tokens
        started_s = self._busy_since_s = time.monotonic()
        inputs = [group[0].work.input for group in taken.groups]
        states = forward_each(self._backend, inputs) if inputs else []
        ran_s = time.monotonic() - started_s
        self._busy_since_s = None
        if inputs:
            self._speed.record(taken.cost_tokens, ran_s)
        values = [
            (item, _reduce(item, state))
            for group, state in zip(taken.groups, states, strict=True)
            for item in group
        ]
        self._report(taken, started_s, sum(isinstance(v, NonFiniteError) for _, v in values))
        settle([(item, _done(item, value, started_s, ran_s)) for item, value in values])
        self._running, self._running_tokens = (), 0.0

    def _report(self, taken: Taken, started_s: float, non_finite: int) -> None:
        lengths = [len(group[0].work.input.ids) for group in taken.groups]
        report = BatchReport(
            lane=taken.lane,
            size=len(lengths),
            tokens=sum(lengths),
            padded_tokens=sum(lengths) if self._backend.packed else padded_tokens(lengths),
            budget_tokens=self._queue.limits.budget_tokens,
            waits_ms=tuple((started_s - item.enqueued_s) * 1e3 for item in self._running),
            duplicates=len(self._running) - len(lengths),
            cancelled=taken.cancelled,
            expired=len(taken.expired),
            non_finite=non_finite,
        )
        try:
            self.on_batch(report)
        except Exception as error:  # noqa: BLE001 - who listens must not cost anybody a result
            _log.error("batch listener failed", error=describe(error))


def padded_tokens(lengths: Sequence[int]) -> int:
    """Tokens of a batch with its padding: its longest input times its size."""
    return max(lengths, default=0) * len(lengths)


def forward_each(backend: Backend, inputs: Sequence[ModelInput]) -> list[Vectors | Exception]:
    """What the model gives for each input, or the error of the inputs that fail even alone.

    A batch that fails is halved and retried, so one bad input, or memory for a smaller batch only,
    costs its neighbours time and nothing else.
    """
    try:
        return list(backend.forward(inputs))
    except Exception as error:  # noqa: BLE001 - handed on to the input that causes it
        if len(inputs) == 1:
            return [error]
    middle = len(inputs) // 2
    return forward_each(backend, inputs[:middle]) + forward_each(backend, inputs[middle:])


def _fail(items: Sequence[Waiting], error: Exception) -> None:
    settle([(item, error) for item in items])


def _reduce(item: Waiting, state: Vectors | Exception) -> Any:
    if isinstance(state, Exception):
        return state
    try:
        return item.work.reduce(require_finite(state))
    except Exception as error:  # noqa: BLE001 - handed on to the caller of this input
        return error


def _done(item: Waiting, value: Any, started_s: float, ran_s: float) -> Done[Any] | Exception:
    if isinstance(value, Exception):
        return value
    return Done(value, (started_s - item.enqueued_s) * 1e3, ran_s * 1e3)


def _ignore(report: BatchReport) -> None:
    """Nobody listens."""
