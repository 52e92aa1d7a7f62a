"""Micro-batches and admission: pure decisions, no threads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.batching.cost import CostModel, Speed
from serve.batching.fairness import Flow
from serve.batching.policy import admits, compose, tokens_ahead

PACKED, PADDED = CostModel(packed=True), CostModel(packed=False)
LENGTHS = st.lists(st.integers(1, 600), min_size=1, max_size=40)


@given(LENGTHS, st.integers(1, 2000), st.booleans(), st.one_of(st.none(), st.integers(1, 8)))
def test_a_batch_holds_the_first_and_keeps_its_budget(
    lengths: list[int], budget: int, packed: bool, most: int | None
) -> None:
    """Behaviours 2 and 5."""
    cost = CostModel(packed, attention_tokens=500)
    chosen = compose(lengths, cost, budget_tokens=budget, max_inputs=most)
    assert 0 in chosen
    assert len(chosen) == len(set(chosen)) <= (most or len(lengths))
    assert len(chosen) == 1 or cost.tokens([lengths[i] for i in chosen]) <= budget


def test_the_nearest_lengths_join() -> None:
    """Behaviour 3."""
    assert compose([10, 100, 12, 9, 50], PADDED, budget_tokens=36) == [0, 3, 2]


def test_an_input_over_the_budget_runs_alone() -> None:
    """Behaviour 5."""
    assert compose([500, 1, 1], PADDED, budget_tokens=64) == [0]


def test_a_packed_batch_pays_for_its_sum_and_a_padded_one_for_its_longest() -> None:
    """Behaviour 2."""
    assert PACKED.tokens([10, 30]) == 40
    assert PADDED.tokens([10, 30]) == 60
    assert CostModel(packed=True, attention_tokens=30).tokens([30]) == 60


@given(LENGTHS, st.booleans())
def test_a_cost_grown_one_by_one_is_the_cost_of_all(lengths: list[int], packed: bool) -> None:
    cost = CostModel(packed, attention_tokens=400)
    spent, longest = 0.0, 0
    for size, length in enumerate(lengths):
        spent = cost.grown(spent, longest, size, length)
        longest = max(longest, length)
    assert math.isclose(spent, cost.tokens(lengths))


def test_speed_follows_what_was_measured() -> None:
    speed = Speed(1000)
    assert speed.seconds_for(500) == pytest.approx(0.5)
    for _ in range(50):
        speed.record(2000, 1.0)
    assert speed.seconds_for(2000) == pytest.approx(1.0, rel=0.01)


def test_tiny_batches_do_not_look_slow() -> None:
    speed = Speed(20_000, fixed_s=0.004)
    for _ in range(50):
        speed.record(12, 0.004 + 12 / 20_000)
    assert speed.seconds_for(8192) == pytest.approx(0.004 + 8192 / 20_000, rel=0.2)


def test_past_the_limit_only_small_flows_get_in() -> None:
    """Behaviour 4: who floods the server finds it full, the others still get in."""
    assert admits(511, 511, 512)
    assert not admits(512, 512, 512)
    assert admits(512, 0, 512)
    assert not admits(640, 0, 512)


def test_a_small_limit_has_no_reserve() -> None:
    assert not admits(2, 0, 2)
    assert admits(8, 0, 8)


def test_a_flow_waits_for_its_share_and_bulk_for_the_other_lane_too() -> None:
    """Behaviour 4: a flood of one tenant makes nobody else late."""
    flood, other = Flow("interactive", "a"), Flow("interactive", "b")
    bulk = Flow("bulk", "a")
    waiting = {flood: 1000.0, bulk: 500.0}
    assert tokens_ahead(other, waiting, 10) == 20
    assert tokens_ahead(flood, waiting, 10) == 1010
    assert tokens_ahead(bulk, waiting, 10) == 1510
    assert tokens_ahead(other, {}, 10) == 10
