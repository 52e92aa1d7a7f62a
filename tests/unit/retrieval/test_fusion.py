"""Reciprocal rank fusion."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.fusion import fuse

A, B, C = (UUID(int=number) for number in (1, 2, 3))
EVEN = {"dense": 1.0, "lexical": 1.0}


def test_a_chunk_that_both_legs_found_comes_first() -> None:
    fused = fuse({"dense": [A, B], "lexical": [C, B]}, EVEN)
    assert [chunk for chunk, _ in fused] == [B, A, C]


def test_a_leg_of_weight_zero_is_left_out() -> None:
    fused = fuse({"dense": [A], "lexical": [B]}, {"dense": 1.0, "lexical": 0.0})
    assert [chunk for chunk, _ in fused] == [A]


def test_a_missing_leg_does_not_lower_a_score() -> None:
    both = dict(fuse({"dense": [A], "lexical": [A]}, EVEN))
    alone = dict(fuse({"dense": [A], "lexical": []}, EVEN))
    assert alone[A] == pytest.approx(both[A])


def test_nothing_found_is_nothing_fused() -> None:
    assert fuse({"dense": [], "lexical": []}, EVEN) == []


@given(
    dense=st.lists(st.uuids(), unique=True, max_size=8),
    lexical=st.lists(st.uuids(), unique=True, max_size=8),
)
def test_the_order_of_the_legs_changes_nothing(dense: list[UUID], lexical: list[UUID]) -> None:
    one = fuse({"dense": dense, "lexical": lexical}, EVEN)
    other = fuse({"lexical": lexical, "dense": dense}, EVEN)
    assert [chunk for chunk, _ in one] == [chunk for chunk, _ in other]
    assert {chunk for chunk, _ in one} == {*dense, *lexical}
