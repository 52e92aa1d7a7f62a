"""Pieces of text on a page to paragraphs in reading order."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from ingest.arrange import arranged
from ingest.parsed import Line, Table
from ingest.rows import rows_of
from ragplane.core.schema import BBox

WIDTH = 600.0
Text = tuple[str, float, float]


def piece(text: str, x: float, y: float, *, size: float = 10, mono: bool = False) -> Line:
    box = BBox(x, y, x + 0.5 * size * len(text), y + 1.1 * size)
    return Line(text, box, size, monospaced=mono)


def column(name: str, x: float, tops: Sequence[float]) -> list[Line]:
    """Lines of 40 characters, 200 points wide, that say where they stand."""
    return [piece(f"{name} {row:02d} ".ljust(40, name[0]), x, y) for row, y in enumerate(tops)]


def steps(start: float, count: int, step: float = 14) -> list[float]:
    return [start + step * row for row in range(count)]


def texts_of(lines: Sequence[Line], ruled: Sequence[Table] = ()) -> list[list[str]]:
    """The texts of the paragraphs, whatever the order in which the pieces came."""
    found = []
    for seed in range(4):
        shuffled = random.Random(seed).sample(list(lines), len(lines))
        paragraphs, _ = arranged(shuffled, ruled, WIDTH)
        found.append([[line.text for line in paragraph] for paragraph in paragraphs])
    assert all(one == found[0] for one in found)
    return found[0]


def flat(lines: Sequence[Line]) -> list[str]:
    return [text for paragraph in texts_of(lines) for text in paragraph]


TITLE = piece("A title over the whole width of the page, from edge to edge", 72, 50, size=16)
LEFT, RIGHT = column("left", 72, steps(100, 12)), column("right", 310, steps(100, 12))
MIDDLE = piece("A heading that bridges the gap between both columns of it", 150, 280, size=13)
BELOW_LEFT, BELOW_RIGHT = column("low", 72, steps(310, 6)), column("foot", 310, steps(310, 6))
THREE = [column(name, x, steps(100, 9)) for name, x in (("a", 40), ("b", 225), ("c", 410))]
NARROW = [[piece(line.text[:30], line.bbox.x0, line.bbox.y0) for line in one] for one in THREE]
SIDEBAR = [piece(f"aside {row}".ljust(22, "s"), 440, 130 + 11 * row, size=8) for row in range(9)]
MAIN = [piece(f"main {row:02d}".ljust(66, "m"), 72, 100 + 14 * row) for row in range(20)]


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param(column("one", 72, steps(100, 20)), id="one column"),
        pytest.param([*LEFT, *RIGHT], id="two columns"),
        pytest.param([TITLE, *LEFT, *RIGHT], id="two columns under a title"),
        pytest.param(
            [TITLE, *LEFT, *RIGHT, MIDDLE, *BELOW_LEFT, *BELOW_RIGHT], id="a heading between"
        ),
        pytest.param([line for one in NARROW for line in one], id="three columns"),
        pytest.param([*MAIN, *SIDEBAR], id="a sidebar"),
        pytest.param(
            [*LEFT, *column("right", 310, steps(104.5, 9, 17))], id="columns with other line steps"
        ),
    ],
)
def test_columns_are_read_one_after_the_other(expected: list[Line]) -> None:
    """Behaviour 12."""
    assert flat(expected) == [line.text for line in expected]


def test_paragraphs_end_at_gaps_indents_and_changes_of_style() -> None:
    lines = [
        piece("Heading", 72, 100, size=14),
        piece("First line of one,", 72, 118),
        piece("its second line.", 72, 132),
        piece("An indent begins another,", 84, 146),
        piece("which goes on.", 72, 160),
        piece("After a gap.", 72, 186),
        piece("x = 1", 72, 200, mono=True),
    ]
    assert texts_of(lines) == [
        ["Heading"],
        ["First line of one,", "its second line."],
        ["An indent begins another,", "which goes on."],
        ["After a gap."],
        ["x = 1"],
    ]


def test_pieces_on_one_baseline_are_one_line() -> None:
    lines = [piece("•", 72, 100), piece("Bring", 84, 100.4), piece("a lamp", 118, 99.8)]
    lines += [piece("An ordinary line that stands below it", 72, 130)]
    assert texts_of(lines)[0] == ["• Bring a lamp"]


def test_right_to_left_pieces_are_joined_from_the_right() -> None:
    """Behaviour 15."""
    lines = [piece("שלום", 300, 100), piece("עולם", 270, 100), piece("Python", 230, 100)]
    lines += [piece("3", 264, 100), piece("בשנת", 200, 100), piece("2024", 170, 100)]
    assert texts_of(lines) == [["שלום עולם Python 3 בשנת 2024"]]


def test_lines_of_a_ruled_table_are_its_own() -> None:
    """Behaviour 13."""
    table = Table(BBox(70, 100, 300, 160), (("a", "b"), ("c", "d")))
    lines = [piece("Above it", 72, 80), piece("a", 80, 110), piece("d", 200, 140)]
    paragraphs, tables = arranged(lines, [table], WIDTH)
    assert [[line.text for line in one] for one in paragraphs] == [["Above it"]]
    assert tables == (table,)


def test_table_in_a_column_is_found_beside_running_text() -> None:
    """Behaviour 13."""
    rows = (("Ship", "Tonnes"), ("Aurora", "1,200"), ("Brig", "800"), ("Cormorant", "15"))
    cells = [
        piece(text, 310 + 110 * c, 200 + 19 * r)
        for r, row in enumerate(rows)
        for c, text in enumerate(row)
    ]
    right = [*column("right", 310, steps(100, 7)), *column("low", 310, steps(280, 7))]
    lines = [*column("left", 72, steps(100, 26)), *right, *cells]
    paragraphs, tables = arranged(lines, (), WIDTH)
    assert [table.rows for table in tables] == [rows]
    assert [line.text[:3] for one in paragraphs for line in one] == ["lef"] * 26 + ["rig"] * 7 + [
        "low"
    ] * 7


def test_text_that_runs_up_the_margin_comes_last() -> None:
    """Behaviour 12: it stands beside all of the page, and cuts none of its paragraphs."""
    rows = [f"row {n:02d} of the text, long enough to fill its line" for n in range(12)]
    lines = [piece(row, 100, 100 + 14 * n) for n, row in enumerate(rows)]
    margin = Line("doc:1234.5678 [x.Y] 21 Jun", BBox(30, 120, 50, 250), 20)
    assert texts_of([*lines, margin]) == [rows, [margin.text]]


def test_a_tall_piece_beside_several_rows_joins_none_of_them() -> None:
    """Behaviour 12: text that runs up the margin."""
    rows = [Line(f"row {n} of the text", BBox(100, 20 * n, 300, 20 * n + 12), 10) for n in range(6)]
    margin = Line("arXiv:1234.5678", BBox(10, 0, 22, 112), 10)
    found = rows_of([*rows, margin])
    assert sorted(len(row.lines) for row in found) == [1] * 7
