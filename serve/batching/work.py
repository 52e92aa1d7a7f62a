"""What travels through a batcher: one input with its reduction, and the result with its times."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from ragplane.core.config import DEFAULT_TENANT
from serve.backends.base import ModelInput
from serve.encoder import Vectors

T = TypeVar("T")
Lane = Literal["interactive", "bulk"]
LANES: tuple[Lane, ...] = ("interactive", "bulk")


@dataclass(frozen=True, slots=True)
class Terms:
    """How a request is to be scheduled. `deadline_s` is on the `time.monotonic` clock."""

    lane: Lane = "interactive"
    tenant: str = DEFAULT_TENANT
    deadline_s: float | None = None

    def left_s(self) -> float | None:
        """Until the deadline, negative once it has passed; None without one."""
        return None if self.deadline_s is None else self.deadline_s - time.monotonic()


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """One input, and how what the model gives for it becomes what the caller wants.

    `reduce` runs on the worker thread, so that a batch of long texts never holds all their token
    vectors at once. Works with equal `input` share one forward pass.
    """

    input: ModelInput
    reduce: Callable[[Vectors], T]


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The reduced value of one input, how long it waited and how long its own batch ran."""

    value: T
    queue_ms: float
    inference_ms: float


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What happened at one dequeue. `size` counts distinct inputs, `tokens` without padding.

    `waits_ms` has the lane and the time in the queue of every input, duplicates included.
    """

    size: int
    tokens: int
    padded_tokens: int
    budget_tokens: float
    waits_ms: tuple[tuple[Lane, float], ...]
    duplicates: int
    cancelled: int
    expired: int
    non_finite: int


@dataclass(eq=False, slots=True)
class Waiting:
    """A work in the queue; None for the work once nobody wants it any more.

    `cost_tokens` is what it costs by itself. `enqueued_s` is on the `time.monotonic` clock.
    """

    work: Work[Any] | None
    cost_tokens: float
    future: asyncio.Future[Done[Any]]
    enqueued_s: float
    terms: Terms


Outcome = Done[Any] | BaseException


def settle(outcomes: Sequence[tuple[Waiting, Outcome]]) -> None:
    """Hand each outcome to the task that waits for it, from any thread; each loop wakes once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Done[Any]], Outcome]]] = {}
    for item, outcome in outcomes:
        by_loop.setdefault(item.future.get_loop(), []).append((item.future, outcome))
    for loop, resolved in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, resolved)


def _resolve(outcomes: Sequence[tuple[asyncio.Future[Done[Any]], Outcome]]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
