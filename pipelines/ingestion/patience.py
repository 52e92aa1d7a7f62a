"""Waiting for a part that is down: a database that restarts, an encoder that is replaced."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from ragplane.core.errors import OverloadedError, Stage, StageError, UnavailableError, describe

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0
_log = structlog.get_logger()
T = TypeVar("T")


class PartDownError(StageError):
    """A part that every document needs stayed down: the run cannot go on."""


async def patiently(work: Callable[[], Awaitable[T]], stage: Stage, limit_s: float) -> T:
    """What `work` gives, tried again with growing pauses for `limit_s` while its part is down.

    Raises PartDownError at `stage` after that, and any other error at once. What may run twice
    must be idempotent.
    """
    end_s = time.monotonic() + limit_s
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return await work()
        except (UnavailableError, OverloadedError) as error:
            pause_s = max(pause_s, getattr(error, "retry_after_s", 0.0))
            if time.monotonic() + pause_s > end_s:
                raise PartDownError(stage, describe(error)) from error
            _log.warning("waiting", stage=stage, cause=describe(error), pause_s=pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
