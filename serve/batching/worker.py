"""A thread that runs a backend: takes micro-batches, survives bad inputs, restarts itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import structlog

from ragplane.core.errors import (
    DeadlineError,
    ModelError,
    NonFiniteError,
    UnavailableError,
    describe,
)
from serve.backends.base import Backend, BackendDownError, ModelInput
from serve.batching.cost import Speed
from serve.batching.queue import Taken, WorkQueue
from serve.batching.work import BatchReport, Done, Waiting, Work, settle
from serve.encoder import Vectors
from serve.pooling import require_finite

_WATCH_EVERY_S = 1.0
_CLOSE_WITHIN_S = 5.0
# A pass that takes this many times longer than expected is stuck, not slow.
_STUCK_FACTOR = 10.0
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Running:
    """The batch that runs now, and since when its forward pass does."""

    items: tuple[Waiting, ...]
    cost_tokens: float
    since_s: float
    limit_s: float

    @property
    def stuck(self) -> bool:
        return time.monotonic() - self.since_s > self.limit_s


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

        After a crash a new one starts `restart_after_s` later. When a forward pass takes over
        `stuck_after_s`, and ten times what it should, whoever waits is told, and the backend is to
        end it if it can.
        """
        self.on_batch: Callable[[BatchReport], None] = _ignore
        self._backend = backend
        self._queue = queue
        self._speed = speed
        self._restart_after_s = restart_after_s
        self._stuck_after_s = stuck_after_s
        self._running: _Running | None = None
        self._told: _Running | None = None
        self._alive = True
        self._closed = threading.Event()
        self._thread = self._start(after_s=0.0)
        threading.Thread(target=self._watch, name="worker-watchdog", daemon=True).start()

    @property
    def healthy(self) -> bool:
        """False while the thread is down or stuck in a forward pass."""
        running = self._running
        return self._alive and not (running and running.stuck)

    @property
    def running_tokens(self) -> float:
        """Cost of the batch that runs now."""
        running = self._running
        return running.cost_tokens if running else 0.0

    def close(self) -> None:
        """End after the micro-batch that runs now, and fail what waits.

        Blocks until then, for seconds at most: a pass that takes longer fails too.
        """
        self._closed.set()
        self._queue.close()
        failure = UnavailableError("the encoder was closed")
        _fail(self._queue.clear(), failure)
        self._thread.join(_CLOSE_WITHIN_S)
        if running := self._running:
            _fail(running.items, failure)

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
        running, self._running = self._running, None
        _log.error("model worker died", error=describe(error))
        failure = UnavailableError("the model worker died")
        failure.__cause__ = error
        _fail([*(running.items if running else ()), *self._queue.clear()], failure)
        self._thread = self._start(after_s=self._restart_after_s)

    def _watch(self) -> None:
        """Fail what waits for a stuck forward pass and end it, for as long as it is stuck."""
        while not self._closed.wait(min(_WATCH_EVERY_S, self._stuck_after_s)):
            running = self._running
            if running is None or not running.stuck:
                continue
            if self._told is not running:
                _log.error("model worker is stuck", after_s=running.limit_s)
                self._told = running
            failure = UnavailableError("the model worker is stuck")
            _fail([*running.items, *self._queue.clear()], failure)
            self._backend.interrupt(running.limit_s)

    def _run(self, taken: Taken) -> None:
        _fail(taken.expired, DeadlineError("the deadline passed in the queue"))
        started_s = time.monotonic()
        items = tuple(item for group in taken.groups for item, _ in group.items)
        states = self._forward(taken, items) if items else []
        ran_s = time.monotonic() - started_s
        values = [
            (item, _reduce(work, state))
            for group, state in zip(taken.groups, states, strict=True)
            for item, work in group.items
        ]
        non_finite = sum(isinstance(value, NonFiniteError) for _, value in values)
        self._report(taken, items, started_s, non_finite)
        settle([(item, _done(item, value, started_s, ran_s)) for item, value in values])
        self._running = None

    def _forward(self, taken: Taken, items: tuple[Waiting, ...]) -> list[Vectors | Exception]:
        expected_s = self._speed.seconds_for(taken.cost_tokens)
        limit_s = max(self._stuck_after_s, _STUCK_FACTOR * expected_s)

        def forward(inputs: Sequence[ModelInput]) -> list[Vectors]:
            if self._told and self._told.items is items:  # nobody waits for its halves
                raise UnavailableError("the model worker was stuck")
            self._running = _Running(items, taken.cost_tokens, time.monotonic(), limit_s)
            return self._backend.forward(inputs)

        started_s = time.monotonic()
        states = forward_each(forward, [group.input for group in taken.groups])
        if not any(isinstance(state, Exception) for state in states):
            self._speed.record(taken.cost_tokens, time.monotonic() - started_s)
        return states

    def _report(
        self, taken: Taken, items: Sequence[Waiting], started_s: float, non_finite: int
    ) -> None:
        lengths = [len(group.input.ids) for group in taken.groups]
        report = BatchReport(
            size=len(lengths),
            tokens=sum(lengths),
            padded_tokens=sum(lengths) if self._backend.packed else padded_tokens(lengths),
            budget_tokens=self._queue.limits.budget_tokens,
            waits_ms=tuple((i.terms.lane, (started_s - i.enqueued_s) * 1e3) for i in items),
            duplicates=len(items) - len(lengths),
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


def forward_each(
    forward: Callable[[Sequence[ModelInput]], list[Vectors]], inputs: Sequence[ModelInput]
) -> list[Vectors | Exception]:
    """What the model gives for each input, or the error of the inputs that fail even alone.

    A batch that fails is halved and retried, so one bad input, or memory for a smaller batch only,
    costs its neighbours time and nothing else. Raises BackendDownError, which ends the worker.
    """
    try:
        return list(forward(inputs))
    except BackendDownError:
        raise
    except Exception as error:  # noqa: BLE001 - handed on to the input that causes it
        if len(inputs) == 1:
            return [_of_one(error, inputs[0])]
    middle = len(inputs) // 2
    return forward_each(forward, inputs[:middle]) + forward_each(forward, inputs[middle:])


def _of_one(error: Exception, item: ModelInput) -> Exception:
    if not isinstance(error, MemoryError):
        return error
    failure = ModelError(f"not enough memory for an input of {len(item.ids)} tokens")
    failure.__cause__ = error
    return failure


def _fail(items: Sequence[Waiting], error: Exception) -> None:
    settle([(item, error) for item in items])


def _reduce(work: Work[Any], state: Vectors | Exception) -> Any:
    if isinstance(state, Exception):
        return state
    try:
        value = work.reduce(require_finite(state))
        return require_finite(value) if isinstance(value, np.ndarray) else value
    except Exception as error:  # noqa: BLE001 - handed on to the caller of this input
        return error


def _done(item: Waiting, value: Any, started_s: float, ran_s: float) -> Done[Any] | Exception:
    if isinstance(value, Exception):
        return value
    return Done(value, (started_s - item.enqueued_s) * 1e3, ran_s * 1e3)


def _ignore(report: BatchReport) -> None:
    """Nobody listens."""
