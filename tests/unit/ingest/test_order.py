"""Reading order on pages of one to three columns."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.order import column_regions
from ragplane.core.schema import BBox

WIDTH = 600.0


def in_order(boxes: Sequence[BBox]) -> list[BBox]:
    return [box for region in column_regions(boxes, lambda box: box, WIDTH) for box in region]


def column(x0: float, x1: float, tops: Sequence[float] = (100, 200, 300)) -> list[BBox]:
    return [BBox(x0, top, x1, top + 60) for top in tops]


HEADING = BBox(50, 40, 550, 70)
FOOTNOTE = BBox(50, 700, 550, 720)
LEFT, RIGHT = column(50, 280), column(320, 550, (110, 190, 310))
THREE = [*column(50, 200), *column(225, 375), *column(400, 550)]


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param(column(50, 550), id="one column"),
        pytest.param(LEFT + RIGHT, id="two columns"),
        pytest.param([HEADING, *LEFT, *RIGHT], id="two columns under a heading"),
        pytest.param([HEADING, *LEFT, *RIGHT, FOOTNOTE], id="two columns between full widths"),
        pytest.param(THREE, id="three columns"),
        pytest.param([HEADING, *THREE], id="three columns under a heading"),
        pytest.param(
            [
                *(*LEFT, *RIGHT, BBox(50, 400, 550, 430)),
                *(*column(50, 280, (450, 520)), *column(320, 550, (450, 530))),
            ],
            id="a heading between two pairs of columns",
        ),
        pytest.param([BBox(50, 100, 90, 112), BBox(95, 100, 140, 112)], id="words of one line"),
    ],
)
def test_columns_are_read_one_after_the_other(expected: list[BBox]) -> None:
    for seed in range(5):
        shuffled = random.Random(seed).sample(expected, len(expected))
        assert in_order(shuffled) == expected


sides = st.tuples(st.integers(0, 50), st.integers(1, 50))
boxes = st.builds(
    lambda x, y: BBox(10.0 * x[0], 10.0 * y[0], 10.0 * sum(x), 10.0 * sum(y)), sides, sides
)


@given(st.lists(boxes, max_size=15), st.randoms(use_true_random=False))
def test_order_is_a_permutation_that_does_not_depend_on_the_order_given(
    items: list[BBox], randomness: random.Random
) -> None:
    ordered = in_order(items)
    assert sorted(ordered) == sorted(items)
    shuffled = randomness.sample(items, len(items))
    assert in_order(shuffled) == ordered
