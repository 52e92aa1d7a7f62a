"""Tables from ruled lines."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import pytest

from ingest.tables import Word, ruled_tables
from ragplane.core.schema import BBox

XS, YS = (100.0, 200.0, 300.0), (100.0, 120.0, 140.0, 160.0)
CELLS = (("Item", "Price"), ("Lamp", "12"), ("Desk", "80"))


def words_in(cells: Iterable[Sequence[str]], left: float = 100.0) -> list[Word]:
    return [
        Word(
            text,
            BBox(left + 100 * column + 5, 104 + 20 * row, left + 100 * column + 40, 116 + 20 * row),
        )
        for row, texts in enumerate(cells)
        for column, text in enumerate(texts)
    ]


def lines(xs: Sequence[float] = XS, ys: Sequence[float] = YS, width: float = 0.0) -> list[BBox]:
    horizontal = [BBox(xs[0], y, xs[-1], y + width) for y in ys]
    vertical = [BBox(x, ys[0], x + width, ys[-1]) for x in xs]
    return horizontal + vertical


@pytest.mark.parametrize(
    "boxes",
    [
        pytest.param(lines(), id="strokes"),
        pytest.param(lines(width=0.7), id="thin rectangles"),
        pytest.param(
            [BBox(x, y, x + 100, y + 20) for x in XS[:-1] for y in YS[:-1]], id="cell rectangles"
        ),
        pytest.param([*lines(), *lines()], id="drawn twice"),
        pytest.param(
            [BBox(*(edge + 0.8 * (i % 2) for edge in box)) for i, box in enumerate(lines())],
            id="not quite aligned",
        ),
    ],
)
def test_grid_of_rules_is_a_table(boxes: list[BBox]) -> None:
    [table] = ruled_tables(boxes, words_in(CELLS))
    assert table.rows == CELLS
    assert table.bbox == pytest.approx((100, 100, 300, 160), abs=2)


@pytest.mark.parametrize(
    "boxes",
    [
        pytest.param([], id="nothing drawn"),
        pytest.param([BBox(100, 100, 300, 160)], id="one box"),
        pytest.param([BBox(100, 100, 300, 160), BBox(110, 105, 290, 155)], id="a double frame"),
        pytest.param(lines()[:4], id="only rules across"),
        pytest.param([BBox(100, 100, 105, 105)] * 9, id="dots"),
    ],
)
def test_other_drawings_are_no_table(boxes: list[BBox]) -> None:
    assert ruled_tables(boxes, words_in(CELLS)) == []


def test_grid_that_holds_one_filled_column_is_no_table() -> None:
    assert ruled_tables(lines(), words_in([("a",), ("b",), ("c",)])) == []


def test_grid_without_two_cells_filled_side_by_side_is_no_table() -> None:
    """Behaviour 13: boxes with a label and a remark in opposite corners."""
    assert ruled_tables(lines(), words_in([("a", ""), ("", "b"), ("c", "")])) == []


def test_words_of_a_cell_are_joined_and_empty_rows_left_out() -> None:
    words = words_in([("Item", "Price"), (), ("Desk", "80")])
    words.append(Word("lamp", BBox(145, 144, 180, 156)))
    [table] = ruled_tables(lines(), words)
    assert table.rows == (("Item", "Price"), ("Desk lamp", "80"))


def test_words_outside_the_grid_stay_outside() -> None:
    [table] = ruled_tables(lines(), [*words_in(CELLS), Word("note", BBox(320, 104, 350, 116))])
    assert table.rows == CELLS


def test_separate_grids_are_separate_tables() -> None:
    boxes = lines() + lines(xs=(350.0, 450.0, 550.0))
    words = words_in(CELLS) + words_in([("A", "B"), ("1", "2"), ("3", "4")], left=350)
    tables = sorted(ruled_tables(boxes, words), key=lambda table: table.bbox.x0)
    assert [table.rows[0] for table in tables] == [("Item", "Price"), ("A", "B")]


def test_merged_cell_stands_once_at_its_top_left() -> None:
    """Behaviour 13."""
    left, right = BBox(100, 100, 300, 120), BBox(100, 120, 200, 160)
    boxes = [left, right, *(BBox(200, y, 300, y + 20) for y in (120, 140))]
    words = [
        Word(text, BBox(x, y, x + 30, y + 10))
        for text, x, y in [
            *(("Prices", 170, 105), ("2024", 205, 105), ("Lamp", 110, 125), ("12", 210, 125)),
            *(("post", 110, 145), ("14", 210, 145)),
        ]
    ]
    [found] = ruled_tables(boxes, words)
    assert found.rows == (("Prices 2024", ""), ("Lamp post", "12"), ("", "14"))


def test_rows_without_rules_between_them_are_parted() -> None:
    """Behaviour 13."""
    cells = (("Item", "Price"), ("Lamp", "12"), ("Desk", "80"), ("Oar", "7"))
    [found] = ruled_tables(lines(ys=(100.0, 120.0, 180.0)), words_in(cells))
    assert found.rows == cells


def test_frames_around_columns_of_prose_are_no_table() -> None:
    """Behaviour 13."""
    words = [
        Word("word", BBox(x, y, x + 20, y + 8))
        for column in (100, 200)
        for x in range(column + 5, column + 80, 22)
        for y in range(125 + column // 20, 700, 10)
    ]
    assert ruled_tables(lines(ys=(100.0, 120.0, 720.0)), [*words_in(CELLS[:1]), *words]) == []


def test_very_many_strokes_take_time_in_proportion() -> None:
    dashes = [BBox(14.0 * x, 3.0 * y, 14.0 * x + 9, 3.0 * y) for x in range(40) for y in range(500)]
    started = time.process_time()
    assert ruled_tables(dashes, []) == []
    assert time.process_time() - started < 8
