"""What travels through a batcher: one input with its reduction, and the result with its times."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from serve.backend import TokenIds
from serve.encoder import Vectors

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """One input, and how its token vectors [length, hidden] become what the caller wants.

    `reduce` runs on the worker thread, so that a batch of long texts never holds all their token
    vectors at once. Works with equal `ids` share one forward pass.
    """

    ids: TokenIds
    reduce: Callable[[Vectors], T]


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The reduced value of one input, how long it waited and how long its own batch ran."""

    value: T
    queue_ms: float
    inference_ms: float


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What happened at one dequeue. `size` counts distinct inputs, `tokens` without padding."""

    size: int
    tokens: int
    padded_tokens: int
    budget_tokens: int
    duplicates: int
    cancelled: int
    expired: int
    non_finite: int


@dataclass(eq=False, slots=True)
class Waiting:
    """A work in the queue. `deadline_s` and `enqueued_s` are on the `time.monotonic` clock."""

    work: Work[Any]
    future: asyncio.Future[Done[Any]]
    enqueued_s: float
    deadline_s: float | None


def settle(item: Waiting, outcome: Done[Any] | BaseException) -> None:
    """Hand `outcome` to the waiting task, from any thread."""
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        item.future.get_loop().call_soon_threadsafe(_resolve, item.future, outcome)


def _resolve(future: asyncio.Future[Done[Any]], outcome: Done[Any] | BaseException) -> None:
    if future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
