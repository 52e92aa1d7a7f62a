"""The threads that tokenise, apart from the event loop: a pool for each lane."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ragplane.core.errors import DeadlineError, UnavailableError
from ragplane.core.telemetry import tracer
from ragplane.core.tokens import TokenizedText
from serve.batching.work import LANES, Lane, Terms
from serve.requests import Timings

# A long request takes its turn again after so many inputs.
_SLICE = 64
# So little is tokenised in less time than a thread takes to wake up.
_FEW_INPUTS, _FEW_CHARACTERS = 8, 1000
T = TypeVar("T")


class TokenizerPools:
    """A query never waits for the texts of a crawler to be tokenised."""

    def __init__(self, threads: int) -> None:
        """Each lane has `threads` of its own."""
        self._pools = {lane: ThreadPoolExecutor(threads, f"tokenizer-{lane}") for lane in LANES}
        self._closed = False

    async def run(self, lane: Lane, function: Callable[..., T], *arguments: object) -> T:
        """`function` on a thread of the lane. Raises UnavailableError once closed."""
        if self._closed:
            raise UnavailableError("the encoder is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pools[lane], function, *arguments)

    async def tokenize(
        self,
        terms: Terms,
        prepare: Callable[[Sequence[T], int], list[TokenizedText]],
        inputs: Sequence[T],
        *,
        characters: int | None = None,
    ) -> tuple[list[TokenizedText], Timings]:
        """What `prepare` makes of `inputs`; it gets slices, each with its first position.

        With few inputs of few `characters` in all, if that is known, it runs on the event loop
        itself. Raises DeadlineError when the deadline passes meanwhile.
        """
        few_characters = characters is not None and characters <= _FEW_CHARACTERS
        is_short = few_characters and len(inputs) <= _FEW_INPUTS
        started_s = time.perf_counter()
        texts: list[TokenizedText] = []
        with tracer.start_as_current_span("tokenize"):
            try:
                async with asyncio.timeout(terms.left_s()):
                    for first in range(0, len(inputs), _SLICE):
                        part = inputs[first : first + _SLICE]
                        if is_short:
                            texts += prepare(part, first)
                        else:
                            texts += await self.run(terms.lane, prepare, part, first)
            except TimeoutError as error:
                raise DeadlineError("the deadline passed while tokenising") from error
        return texts, Timings(tokenization_ms=(time.perf_counter() - started_s) * 1e3)

    def close(self) -> None:
        """Take no more; what was taken is finished."""
        self._closed = True
        for pool in self._pools.values():
            pool.shutdown(wait=False)
