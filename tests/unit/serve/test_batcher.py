"""The batcher around a backend that can be told to fail."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
import pytest

from ragplane.core.errors import (
    DeadlineError,
    ModelError,
    NonFiniteError,
    OverloadedError,
    UnavailableError,
)
from serve.backends.base import ModelInput, TokenIds
from serve.batching.batcher import Batcher
from serve.batching.cost import CostModel, Speed
from serve.batching.queue import Limits
from serve.batching.work import BatchReport, Lane, Terms, Work
from serve.encoder import Vectors

BAD, NOT_FINITE, DEADLY = 666, 667, 668


class StubBackend:
    """Token vectors that repeat the ids. `gate` holds every forward pass while it is cleared."""

    name = "stub"
    dtype = "float32"
    packed = False
    streams = 1

    def __init__(self) -> None:
        self.batches: list[list[TokenIds]] = []
        self.memory_for = 1000
        self.gate = threading.Event()
        self.gate.set()

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        batch = [item.ids for item in inputs]
        self.batches.append(batch)
        self.gate.wait(10)
        if any(DEADLY in ids for ids in batch):
            raise SystemExit("the driver is gone")
        if len(batch) > self.memory_for:
            raise MemoryError
        if any(BAD in ids for ids in batch):
            raise ModelError("bad input")
        return [_state(ids) for ids in batch]


def _state(ids: TokenIds) -> Vectors:
    column = np.array(ids, np.float32)[:, None]
    return np.where(column == NOT_FINITE, np.nan, column).astype(np.float32)


def work(*ids: int) -> Work[float]:
    return Work(ModelInput(ids), lambda tokens: float(tokens.sum()))


def make(backend: StubBackend, max_requests: int, limits: Limits, **changes: Any) -> Batcher:
    cost, speed = CostModel(packed=False), Speed(100_000)
    return Batcher(
        backend, max_requests=max_requests, limits=limits, cost=cost, speed=speed, **changes
    )


@pytest.fixture
def backend() -> StubBackend:
    return StubBackend()


@pytest.fixture
def reports() -> list[BatchReport]:
    return []


@pytest.fixture
async def batcher(backend: StubBackend, reports: list[BatchReport]) -> AsyncIterator[Batcher]:
    batcher = make(backend, 2, Limits(64), restart_after_s=0.05, stuck_after_s=2.0)
    batcher.listen(reports.append)
    yield batcher
    backend.gate.set()
    await batcher.aclose()


def queued(batcher: Batcher) -> int:
    return sum(batcher.queue_sizes.values())


async def until(condition: object) -> None:
    """Wait for a callable to become true, ten seconds at most."""
    assert callable(condition)
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("the condition did not become true")


async def test_results_keep_the_order_and_the_budget(
    batcher: Batcher, backend: StubBackend
) -> None:
    works = [work(*range(1, 2 + n % 9)) for n in range(50)]
    done = await batcher.run(works)
    assert [item.value for item in done] == [sum(work.input.ids) for work in works]
    assert all(max(map(len, batch)) * len(batch) <= 64 for batch in backend.batches)


async def test_duplicates_run_once(batcher: Batcher, reports: list[BatchReport]) -> None:
    """Behaviour 11."""
    done = await batcher.run([work(1, 2), work(3), work(1, 2), work(1, 2)])
    assert [item.value for item in done] == [3, 3, 3, 3]
    assert sum(report.duplicates for report in reports) == 2
    assert sum(report.size for report in reports) == 2


async def test_the_batch_is_reported_before_its_results_go_out(
    batcher: Batcher, backend: StubBackend
) -> None:
    reported = threading.Event()
    batcher.listen(lambda report: reported.wait(10) and None)
    running = asyncio.create_task(batcher.run([work(1)]))
    await until(lambda: backend.batches)
    await asyncio.sleep(0.05)  # long enough for a result that does not wait
    assert not running.done()
    reported.set()
    assert (await running)[0].value == 1


async def test_a_listener_that_fails_costs_nobody_a_result(batcher: Batcher) -> None:
    threads: list[int] = []

    def fail(report: BatchReport) -> None:
        threads.append(threading.get_ident())
        raise ValueError("no")

    batcher.listen(fail)
    assert (await batcher.run([work(1)]))[0].value == 1
    assert (await batcher.run([work(2)]))[0].value == 2
    assert batcher.healthy
    assert threads == [threads[0]] * 2  # the worker did not have to start again


async def test_the_budget_is_what_was_set(backend: StubBackend, reports: list[BatchReport]) -> None:
    batcher = make(backend, 2, Limits(5000))
    batcher.listen(reports.append)
    await batcher.run([work(*[n] * 100) for n in range(50)])
    assert [(report.size, report.budget_tokens) for report in reports] == [(50, 5000)]
    await batcher.aclose()


async def test_an_input_over_the_budget_runs_alone(batcher: Batcher, backend: StubBackend) -> None:
    done = await batcher.run([work(*[1] * 100), work(1)])
    assert [item.value for item in done] == [100, 1]
    assert sorted(len(batch) for batch in backend.batches) == [1, 1]


@pytest.mark.parametrize(("poison", "error"), [(BAD, ModelError), (NOT_FINITE, NonFiniteError)])
async def test_a_bad_input_fails_itself_only(
    batcher: Batcher, backend: StubBackend, poison: int, error: type[Exception]
) -> None:
    """Behaviour 9."""
    backend.gate.clear()
    blocker = asyncio.create_task(batcher.run([work(9)]))
    await until(lambda: backend.batches)
    bad = asyncio.create_task(batcher.run([work(poison)]))
    good = asyncio.create_task(batcher.run([work(n) for n in range(1, 8)]))
    await until(lambda: queued(batcher) == 8)
    backend.gate.set()
    with pytest.raises(error):
        await bad
    assert [item.value for item in await good] == list(range(1, 8))
    await blocker


async def test_cancelled_inputs_are_dropped_and_counted(
    batcher: Batcher, backend: StubBackend, reports: list[BatchReport]
) -> None:
    backend.gate.clear()
    blocker = asyncio.create_task(batcher.run([work(9)]))
    await until(lambda: backend.batches)
    gone = asyncio.create_task(batcher.run([work(1), work(2), work(3)]))
    await until(lambda: queued(batcher) == 3)
    gone.cancel()
    await asyncio.wait([gone])
    backend.gate.set()
    await blocker
    await until(lambda: sum(report.cancelled for report in reports) == 3)
    assert backend.batches == [[(9,)]]


async def test_admission_is_by_request_and_gives_permits_back(batcher: Batcher) -> None:
    with batcher.admit(), batcher.admit():
        with pytest.raises(OverloadedError, match="limit") as raised, batcher.admit():
            pass
        assert raised.value.retry_after_s >= 1
    with batcher.admit():
        assert batcher.accepts


async def test_a_deadline_that_cannot_be_met_is_refused(batcher: Batcher) -> None:
    await batcher.run([work(1)])
    with pytest.raises(DeadlineError):
        await batcher.run([work(1)], Terms(deadline_s=time.monotonic() - 1))
    assert (await batcher.run([work(1)], Terms(deadline_s=time.monotonic() + 60)))[0].value == 1


async def test_inputs_that_expire_in_the_queue_are_dropped(
    batcher: Batcher, backend: StubBackend
) -> None:
    backend.gate.clear()
    blocker = asyncio.create_task(batcher.run([work(9)]))
    await until(lambda: backend.batches)
    late = asyncio.create_task(batcher.run([work(1)], Terms(deadline_s=time.monotonic() + 0.05)))
    await asyncio.sleep(0.1)
    backend.gate.set()
    with pytest.raises(DeadlineError, match="queue"):
        await late
    await blocker
    assert backend.batches == [[(9,)]]


async def test_a_dead_worker_fails_its_futures_and_is_restarted(batcher: Batcher) -> None:
    with pytest.raises(UnavailableError, match="worker died") as raised:
        await batcher.run([work(DEADLY), work(1)])
    assert isinstance(raised.value.__cause__, SystemExit)
    assert not batcher.healthy
    with pytest.raises(UnavailableError, match="down"), batcher.admit():
        pass
    await until(lambda: batcher.healthy)
    assert (await batcher.run([work(1)]))[0].value == 1


async def test_a_reduction_that_fails_fails_its_own_request(batcher: Batcher) -> None:
    def fail(tokens: Vectors) -> float:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await batcher.run([Work(ModelInput((1,)), fail)])
    assert (await batcher.run([work(1)]))[0].value == 1


async def test_draining_refuses_new_requests_and_waits_for_open_ones(batcher: Batcher) -> None:
    async def open_request() -> float:
        with batcher.admit():
            await asyncio.sleep(0.05)
            return (await batcher.run([work(4)]))[0].value

    request = asyncio.create_task(open_request())
    await asyncio.sleep(0)
    await batcher.drain(10)
    assert request.done()
    assert await request == 4
    with pytest.raises(UnavailableError, match="draining"), batcher.admit():
        pass


async def test_a_forward_pass_that_hangs_fails_who_waits(backend: StubBackend) -> None:
    """Behaviour 10: nobody waits for ever."""
    batcher = make(backend, 9, Limits(64), stuck_after_s=0.05)
    backend.gate.clear()
    hanging = asyncio.create_task(batcher.run([work(1)]))
    await until(lambda: backend.batches)
    waiting = asyncio.create_task(batcher.run([work(2)]))
    for task in (hanging, waiting):
        with pytest.raises(UnavailableError, match="stuck"):
            await task
    assert not batcher.healthy
    backend.gate.set()
    await until(lambda: batcher.healthy)
    assert (await batcher.run([work(3)]))[0].value == 3
    await batcher.aclose()


async def test_closing_fails_what_waits(backend: StubBackend) -> None:
    batcher = make(backend, 2, Limits(64))
    backend.gate.clear()
    blocker = asyncio.create_task(batcher.run([work(9)]))
    await until(lambda: backend.batches)
    waits = asyncio.create_task(batcher.run([work(1)]))
    await until(lambda: queued(batcher) == 1)
    closing = asyncio.create_task(batcher.aclose())
    with pytest.raises(UnavailableError, match="closed"):
        await waits
    backend.gate.set()
    await closing
    assert (await blocker)[0].value == 9
    with pytest.raises(UnavailableError, match="closed"):
        await batcher.run([work(1)])


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
