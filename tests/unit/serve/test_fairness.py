"""Whose turn it is: lanes, tenants, idleness, ageing. No threads, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from serve.batching.fairness import MAX_AGE_S, Clock, Flow, charge, turn

QUERY, CRAWL = Flow("interactive", "a"), Flow("bulk", "a")
OTHER = Flow("bulk", "b")


def served(
    waiting: Callable[[int], Iterable[Flow]], rounds: int, *, oldest_bulk_s: float = 0.0
) -> list[Flow]:
    """Who was served when, each batch costing 100 tokens."""
    clock, order = Clock(), []
    for step in range(rounds):
        flows = list(waiting(step))
        flow = turn(clock, flows)[0]
        clock = charge(clock, {flow: 100.0}, flows, oldest_bulk_s)
        order.append(flow)
    return order


def test_saturated_lanes_share_by_weight() -> None:
    """Behaviour 4."""
    counts = Counter(served(lambda _: [CRAWL, QUERY], 100))
    assert counts == {QUERY: 80, CRAWL: 20}


def test_a_rare_query_goes_before_any_backlog() -> None:
    """Behaviour 4: it waits for the micro-batch that runs, and for no other."""
    order = served(lambda step: [CRAWL, QUERY] if step % 10 == 9 else [CRAWL], 100)
    assert [order[step] for step in range(9, 100, 10)] == [QUERY] * 10


def test_tenants_of_a_lane_share_evenly() -> None:
    """Behaviour 4."""
    counts = Counter(served(lambda _: [CRAWL, OTHER], 100))
    assert counts == {CRAWL: 50, OTHER: 50}


def test_who_was_idle_saves_up_no_claim() -> None:
    order = served(lambda step: [CRAWL] if step < 50 else [CRAWL, OTHER], 100)
    assert Counter(order[50:]) == {CRAWL: 25, OTHER: 25}


def test_a_starved_bulk_lane_gets_half() -> None:
    counts = Counter(served(lambda _: [CRAWL, QUERY], 100, oldest_bulk_s=MAX_AGE_S + 1))
    assert counts == {QUERY: 50, CRAWL: 50}


def test_a_batch_of_several_tenants_is_charged_to_each() -> None:
    clock = charge(Clock(), {CRAWL: 300.0, OTHER: 100.0}, [CRAWL, OTHER], 0.0)
    assert turn(clock, [CRAWL, OTHER]) == [OTHER, CRAWL]


def test_tenants_that_left_are_forgotten() -> None:
    clock = Clock()
    for number in range(1000):
        flow = Flow("interactive", f"tenant {number}")
        clock = charge(clock, {flow: 10.0}, [], 0.0)
    assert len(clock.tenants["interactive"].of) <= 2


def test_nobody_waits_nobody_is_served() -> None:
    assert turn(Clock(), []) == []
