"""Composition of micro-batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from serve.batching.policy import compose, padded_tokens

lengths_lists = st.lists(st.integers(1, 300), max_size=60)


@given(lengths_lists, st.integers(1, 1000))
def test_every_input_comes_out_exactly_once_within_the_budget(
    lengths: list[int], budget: int
) -> None:
    waiting = list(enumerate(lengths))
    seen: list[int] = []
    while waiting:
        chosen = compose([length for _, length in waiting], budget_tokens=budget)
        assert 0 in chosen  # the oldest always runs
        batch = [waiting[index] for index in chosen]
        cost = padded_tokens([length for _, length in batch])
        assert cost <= budget or len(batch) == 1
        seen += [position for position, _ in batch]
        waiting = [item for index, item in enumerate(waiting) if index not in set(chosen)]
    assert sorted(seen) == list(range(len(lengths)))


def test_nothing_waits() -> None:
    assert compose([], budget_tokens=100) == []


def test_nearest_lengths_join_the_oldest() -> None:
    assert sorted(compose([50, 200, 48, 10, 51], budget_tokens=153)) == [0, 2, 4]


def test_an_input_over_the_budget_runs_alone() -> None:
    assert compose([500, 500, 3], budget_tokens=100) == [0]
