"""Whose turn it is: lanes, tenants, idleness, ageing. No threads, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from serve.batching.fairness import MAX_AGE_S, Clock, Flow, charge, turn

QUERY, CRAWL = Flow("interactive", "a"), Flow("bulk", "a")
OTHER = Flow("bulk", "b")


def served(waiting: Callable[[int], Iterable[Flow]], rounds: int) -> list[Flow]:
    """Who was served when, each batch costing 100 tokens."""
    clock, order = Clock(), []
    for step in range(rounds):
        flows = list(waiting(step))
        flow = turn(clock, dict.fromkeys(flows, 0.0))[0]
        clock = charge(clock, {flow: 100.0}, flows)
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


def test_who_was_not_served_for_long_goes_first() -> None:
    """Behaviour 3: however many names a client makes up, nobody starves."""
    fresh = [Flow("bulk", f"made up {number}") for number in range(3)]
    waits = {**dict.fromkeys(fresh, 0.0), CRAWL: MAX_AGE_S + 1, OTHER: MAX_AGE_S + 2}
    clock = charge(Clock(), {CRAWL: 900.0, OTHER: 900.0}, waits)
    assert turn(clock, waits)[:2] == [OTHER, CRAWL]
    assert turn(clock, {**waits, CRAWL: 0.0, OTHER: 0.0})[0] in fresh


def test_a_starved_crawler_still_does_not_overtake_the_other_lane() -> None:
    clock = charge(Clock(), {CRAWL: 900.0}, [CRAWL, QUERY])
    assert turn(clock, {CRAWL: MAX_AGE_S + 1, QUERY: 0.0}) == [QUERY]


def test_a_batch_of_several_tenants_is_charged_to_each() -> None:
    clock = charge(Clock(), {CRAWL: 300.0, OTHER: 100.0}, [CRAWL, OTHER])
    assert turn(clock, {CRAWL: 0.0, OTHER: 0.0}) == [OTHER, CRAWL]


def test_made_up_tenants_are_forgotten() -> None:
    """Behaviour 30."""
    alone = beside = Clock()
    for number in range(5000):
        flow = Flow("interactive", f"made up {number}")
        alone = charge(alone, {flow: 10.0}, [])
        beside = charge(beside, {flow: 10.0}, [QUERY])
    assert len(alone.tenants["interactive"].of) <= 1
    assert len(beside.tenants["interactive"].of) <= 1100


def test_nobody_waits_nobody_is_served() -> None:
    assert turn(Clock(), {}) == []
