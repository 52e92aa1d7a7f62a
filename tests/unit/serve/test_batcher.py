"""The batcher around a backend that can be told to fail."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from ragplane.core.errors import (
    DeadlineError,
    ModelError,
    NonFiniteError,
    OverloadedError,
    UnavailableError,
)
from serve.backends.base import BackendDownError, ModelInput
from serve.batching.batcher import Batcher
from serve.batching.queue import Limits
from serve.batching.work import BatchReport, Terms, Work
from serve.encoder import Vectors
from tests.unit.serve.stub_backend import (
    BAD,
    DEADLY,
    DOWN,
    NOT_FINITE,
    StubBackend,
    make,
    queued,
    until,
    work,
)


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


@pytest.mark.parametrize(("deadly", "cause"), [(DEADLY, SystemExit), (DOWN, BackendDownError)])
async def test_a_dead_worker_fails_its_futures_and_is_restarted(
    deadly: int, cause: type[BaseException], batcher: Batcher, backend: StubBackend
) -> None:
    """Behaviour 10."""
    with pytest.raises(UnavailableError, match="worker died") as raised:
        await batcher.run([work(deadly), work(1)])
    assert isinstance(raised.value.__cause__, cause)
    assert len(backend.batches) == 1  # halving helps nobody
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


async def test_a_pass_that_can_be_ended_is(
    backend: StubBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 10: its batch is not run again, and what comes after it is."""
    ended: list[float] = []

    def end(after_s: float) -> None:
        ended.append(after_s)
        backend.memory_for = 0  # the pass fails
        backend.gate.set()

    monkeypatch.setattr(backend, "interrupt", end)
    batcher = make(backend, 9, Limits(64), stuck_after_s=0.05)
    backend.gate.clear()
    with pytest.raises(UnavailableError, match="stuck"):
        await batcher.run([work(1), work(2)])
    await until(lambda: batcher.healthy)
    assert ended == [0.05]
    assert [len(batch) for batch in backend.batches] == [2]
    backend.memory_for = 9
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
