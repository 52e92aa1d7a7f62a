"""Tokenizer pools: lanes apart, long requests in turns."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence

import pytest

from ragplane.core.errors import DeadlineError, UnavailableError
from ragplane.core.tokens import TokenizedText
from serve.batching.work import Terms
from serve.tokenizing import TokenizerPools


def texts(inputs: Sequence[str], first: int) -> list[TokenizedText]:
    return [TokenizedText((first + n,), (False,)) for n in range(len(inputs))]


async def test_a_query_does_not_wait_for_a_crawler() -> None:
    """Behaviour 4: also before the queue."""
    pools, gate = TokenizerPools(1), threading.Event()
    crawl = asyncio.create_task(pools.run("bulk", gate.wait, 10))
    await asyncio.wait_for(pools.run("interactive", str, 1), 5)
    assert not crawl.done()
    gate.set()
    await crawl
    pools.close()


async def test_long_requests_take_turns() -> None:
    pools, order = TokenizerPools(1), []

    def prepare(inputs: Sequence[str], first: int) -> list[TokenizedText]:
        order.append((inputs[0], first))
        return texts(inputs, first)

    long = pools.tokenize(Terms("bulk"), prepare, ["a"] * 200)
    short = pools.tokenize(Terms("bulk"), prepare, ["b"])
    (got, timings), _ = await asyncio.gather(long, short)
    assert [text.ids[0] for text in got] == list(range(200))
    assert timings.tokenization_ms > 0
    assert order.index(("b", 0)) < order.index(("a", 192))
    pools.close()


async def test_closed_pools_say_so() -> None:
    pools = TokenizerPools(1)
    pools.close()
    with pytest.raises(UnavailableError, match="closed"):
        await pools.run("bulk", str, 1)


async def test_a_deadline_is_kept_while_tokenising() -> None:
    pools, gate = TokenizerPools(1), threading.Event()

    def prepare(inputs: Sequence[str], first: int) -> list[TokenizedText]:
        gate.wait(10)
        return texts(inputs, first)

    with pytest.raises(DeadlineError, match="tokenising"):
        await pools.tokenize(Terms(deadline_s=time.monotonic() + 0.05), prepare, ["a"])
    gate.set()
    pools.close()


@pytest.mark.parametrize(
    ("inputs", "characters", "on_loop"),
    [(1, 1000, True), (8, 8, True), (9, 9, False), (1, 1001, False), (1, None, False)],
)
async def test_little_is_tokenised_without_waking_a_thread(
    inputs: int, characters: int | None, on_loop: bool
) -> None:
    pools, threads = TokenizerPools(1), set()

    def prepare(inputs: Sequence[str], first: int) -> list[TokenizedText]:
        threads.add(threading.current_thread())
        return texts(inputs, first)

    await pools.tokenize(Terms(), prepare, ["a"] * inputs, characters=characters)
    assert (threads == {threading.main_thread()}) is on_loop
    pools.close()
