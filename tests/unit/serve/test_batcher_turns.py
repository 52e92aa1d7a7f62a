"""The batcher: turns, floods, deadlines, what is given up, closing."""

from __future__ import annotations

import asyncio
import contextlib
import time

import numpy as np
import pytest

from ragplane.core.errors import (
    DeadlineError,
    ModelError,
    NonFiniteError,
    OverloadedError,
    UnavailableError,
)
from serve.backends.base import ModelInput
from serve.batching.batcher import Batcher
from serve.batching.queue import Limits
from serve.batching.work import BatchReport, Lane, Terms, Work
from tests.unit.serve.stub_backend import (
    StubBackend,
    make,
    queued,
    until,
    work,
)


async def test_a_query_overtakes_a_backlog(
    batcher: Batcher, backend: StubBackend, reports: list[BatchReport]
) -> None:
    """Behaviours 1 and 4: late binding, and one micro-batch of waiting at most."""
    backend.gate.clear()
    crawl = asyncio.create_task(
        batcher.run([work(*[n] * 40) for n in range(1, 9)], Terms("bulk", "crawler"))
    )
    await until(lambda: backend.batches)
    query = asyncio.create_task(batcher.run([work(7)]))
    await until(lambda: queued(batcher) == 8)
    backend.gate.set()
    assert (await query)[0].value == 7
    await crawl
    assert backend.batches[1] == [(7,)]
    assert [report.waits_ms[0][0] for report in reports][:2] == ["bulk", "interactive"]
    assert all(len(report.waits_ms) == report.size for report in reports)


async def test_fifo_keeps_the_order_of_arrival(backend: StubBackend) -> None:
    batcher = make(backend, 9, Limits(40), scheduling="fifo")
    backend.gate.clear()
    lane: Lane = "bulk"
    crawl = asyncio.create_task(batcher.run([work(*[n] * 40) for n in (1, 2, 3)], Terms(lane)))
    await until(lambda: backend.batches)
    query = asyncio.create_task(batcher.run([work(7)]))
    await until(lambda: queued(batcher) == 3)
    backend.gate.set()
    await asyncio.gather(crawl, query)
    assert [batch[0][0] for batch in backend.batches] == [1, 2, 3, 7]
    await batcher.aclose()


async def test_a_batch_holds_no_more_inputs_than_set(backend: StubBackend) -> None:
    batcher = make(backend, 9, Limits(1000, max_inputs=2))
    await batcher.run([work(n) for n in range(1, 8)])
    assert max(map(len, backend.batches)) == 2
    await batcher.aclose()


async def test_a_flood_leaves_room_for_others(backend: StubBackend) -> None:
    """Behaviours 4 and 8."""
    batcher = make(backend, 16, Limits(64))
    flood = Terms("bulk", "crawler")
    with contextlib.ExitStack() as opened:
        for _ in range(16):
            opened.enter_context(batcher.admit(flood))
        with pytest.raises(OverloadedError), batcher.admit(flood):
            pass
        with batcher.admit(Terms("interactive", "crawler")), batcher.admit(Terms("bulk", "b")):
            assert batcher.accepts
    await batcher.aclose()


async def test_a_deadline_is_refused_before_any_work_is_done(
    batcher: Batcher, backend: StubBackend
) -> None:
    with pytest.raises(DeadlineError), batcher.admit(Terms(deadline_s=time.monotonic() - 1)):
        pass
    assert backend.batches == []


async def test_a_deadline_is_kept_while_the_model_is_busy(
    batcher: Batcher, backend: StubBackend
) -> None:
    backend.gate.clear()
    blocker = asyncio.create_task(batcher.run([work(9)]))
    await until(lambda: backend.batches)
    started_s = time.monotonic()
    with pytest.raises(DeadlineError, match="passed") as raised:
        await batcher.run([work(1)], Terms(deadline_s=started_s + 0.1))
    assert raised.value.retry_after_s >= 1
    assert time.monotonic() - started_s < 1
    backend.gate.set()
    await blocker


async def test_what_was_given_up_counts_no_more(batcher: Batcher, backend: StubBackend) -> None:
    """Behaviour 6: permits, sizes and tokens are free at once, and the ids too."""
    backend.gate.clear()
    blocker = asyncio.create_task(batcher.run([work(9)]))
    await until(lambda: backend.batches)
    gone = asyncio.create_task(batcher.run([work(*[n] * 50) for n in range(1, 100)]))
    await until(lambda: queued(batcher) == 99)
    gone.cancel()
    await asyncio.wait([gone])
    assert queued(batcher) == 0
    backend.gate.set()
    await blocker
    assert (await batcher.run([work(3)]))[0].value == 3
    assert backend.batches == [[(9,)], [(3,)]]


async def test_what_waits_is_bounded(backend: StubBackend) -> None:
    """Behaviours 7 and 8: refused as a whole, and nothing of it runs."""
    batcher = make(backend, 9, Limits(64), max_waiting_tokens=100)
    backend.gate.clear()
    blocker = asyncio.create_task(batcher.run([work(*[9] * 200)]))  # alone it may be longer
    await until(lambda: backend.batches)
    waiting = asyncio.create_task(batcher.run([work(*[1] * 60)]))
    await until(lambda: queued(batcher) == 1)
    with pytest.raises(OverloadedError, match="60 tokens wait"):
        await batcher.run([work(2), work(*[3] * 50)])
    backend.gate.set()
    await asyncio.gather(blocker, waiting)
    assert not any(batch[0][0] in (2, 3) for batch in backend.batches)
    await batcher.aclose()


async def test_closing_does_not_wait_for_a_stuck_pass(
    backend: StubBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serve.batching.worker._CLOSE_WITHIN_S", 0.05)
    batcher = make(backend, 9, Limits(64))
    backend.gate.clear()
    hanging = asyncio.create_task(batcher.run([work(1)]))
    await until(lambda: backend.batches)
    await batcher.aclose()
    with pytest.raises(UnavailableError, match="closed"):
        await hanging
    assert not batcher.accepts
    with pytest.raises(UnavailableError, match="closed"), batcher.admit():
        pass
    backend.gate.set()


async def test_a_result_that_is_not_finite_is_an_error(batcher: Batcher) -> None:
    """Behaviour 20: also where only the reduction overflows."""
    huge = Work(ModelInput((1,)), lambda tokens: np.full(3, np.inf, np.float32))
    with pytest.raises(NonFiniteError):
        await batcher.run([huge])


async def test_out_of_memory_halves_the_batch(batcher: Batcher, backend: StubBackend) -> None:
    """Behaviour 9: halved and retried, then the item fails."""
    backend.memory_for = 2
    done = await batcher.run([work(n) for n in range(1, 8)])
    assert [item.value for item in done] == list(range(1, 8))
    backend.memory_for = 0
    with pytest.raises(ModelError, match="not enough memory for an input of 1 tokens"):
        await batcher.run([work(1)])
    assert batcher.healthy
