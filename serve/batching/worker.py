"""The one thread that runs a backend: takes micro-batches, survives bad inputs, restarts itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from ragplane.core.errors import DeadlineError, NonFiniteError, UnavailableError, describe
from serve.backend import Backend, TokenIds
from serve.batching.policy import padded_tokens
from serve.batching.queue import Taken, WorkQueue
from serve.batching.speed import Speed
from serve.batching.work import BatchReport, Done, Waiting, settle
from serve.encoder import Vectors
from serve.pooling import require_finite

_STUCK_AFTER_S = 60.0
_log = structlog.get_logger()


class Worker:
    """Runs what the queue holds. `on_batch` hears of each batch before its results go out."""

    def __init__(self, backend: Backend, queue: WorkQueue, *, restart_after_s: float) -> None:
        """Start the thread. After a crash a new one starts `restart_after_s` later."""
        self.on_batch: Callable[[BatchReport], None] = _ignore
        self.speed = Speed()
        self._backend = backend
        self._queue = queue
        self._restart_after_s = restart_after_s
        self._running: tuple[Waiting, ...] = ()
        self._busy_since_s: float | None = None
        self._alive = True
        self._closed = threading.Event()
        self._thread = self._start(after_s=0.0)

    @property
    def healthy(self) -> bool:
        """False while the thread is down, or a forward pass has run for a minute."""
        since = self._busy_since_s
        return self._alive and (since is None or time.monotonic() - since < _STUCK_AFTER_S)

    def close(self) -> None:
        """End after the micro-batch that runs now, and fail what waits. Blocks until then."""
        self._closed.set()
        self._queue.close()
        self._fail(self._queue.clear(), UnavailableError("the encoder was closed"))
        self._thread.join(_STUCK_AFTER_S)

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
        self._fail([*self._running, *self._queue.clear()], failure)
        self._thread = self._start(after_s=self._restart_after_s)

    def _run(self, taken: Taken) -> None:
        self._fail(taken.expired, DeadlineError("the deadline passed in the queue"))
        self._running = tuple(item for group in taken.groups for item in group)
        inputs = [group[0].work.ids for group in taken.groups]
        started_s = self._busy_since_s = time.monotonic()
        states = forward_each(self._backend, inputs) if inputs else []
        ran_s = time.monotonic() - started_s
        self._busy_since_s = None
        if inputs:
            self.speed.record(padded_tokens([len(ids) for ids in inputs]), ran_s)
        values = [
            (item, _reduce(item, state))
            for group, state in zip(taken.groups, states, strict=True)
            for item in group
        ]
        self._report(taken, inputs, sum(isinstance(value, NonFiniteError) for _, value in values))
        for item, value in values:
            settle(item, _done(item, value, started_s, ran_s))
        self._running = ()

    def _report(self, taken: Taken, inputs: Sequence[TokenIds], non_finite: int) -> None:
        lengths = [len(ids) for ids in inputs]
        report = BatchReport(
            size=len(inputs),
            tokens=sum(lengths),
            padded_tokens=padded_tokens(lengths),
            budget_tokens=self._queue.budget_tokens,
            duplicates=len(self._running) - len(inputs),
            cancelled=taken.cancelled,
            expired=len(taken.expired),
            non_finite=non_finite,
        )
        try:
            self.on_batch(report)
        except Exception as error:  # noqa: BLE001 - who listens must not cost anybody a result
            _log.error("batch listener failed", error=describe(error))

    def _fail(self, items: Sequence[Waiting], error: Exception) -> None:
        for item in items:
            settle(item, error)


def forward_each(backend: Backend, inputs: Sequence[TokenIds]) -> list[Vectors | Exception]:
    """Token vectors of each input, or the error of the inputs that fail even alone.

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
