"""Tables without rules, and what only looks like one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ingest.aligned import aligned_tables
from ingest.parsed import Line
from ragplane.core.schema import BBox

PITCH = 14.0


def piece(text: str, x: float, y: float, *, bold: bool = False, right: bool = False) -> Line:
    width = 5.0 * len(text)
    x = x - width if right else x
    return Line(text, BBox(x, y, x + width, y + 11), 10, bold=bold)


def grid(
    rows: Sequence[Sequence[str]],
    xs: Sequence[float] = (72, 220, 380),
    *,
    pitch: float = PITCH,
    top: float = 100,
    bold: bool = False,
    right: Sequence[int] = (),
) -> list[Line]:
    """Cells at `xs`, those of the columns in `right` end there; empty ones are not drawn."""
    return [
        piece(text, xs[c], top + pitch * r, bold=bold and r == 0, right=c in right)
        for r, row in enumerate(rows)
        for c, text in enumerate(row)
        if text
    ]


def tables_of(lines: Sequence[Line]) -> list[tuple[tuple[str, ...], ...]]:
    return [table.rows for table, _ in aligned_tables(lines)]


SHIPS = (
    ("Ship", "Harbour", "Tonnes"),
    ("Aurora", "Old Mole", "1,200"),
    ("Bold Venture", "Pier Seven", "800"),
    ("Cormorant", "Ystad", "15,030"),
)
PROSE = "The harbour master recorded many arrivals between March and October of that year"


def paragraph(top: float, count: int = 3) -> list[Line]:
    return [piece(PROSE, 72, top + PITCH * row) for row in range(count)]


@pytest.mark.parametrize("right", [(), (2,), (1, 2)], ids=str)
def test_columns_of_words_are_a_table(right: tuple[int, ...]) -> None:
    """Behaviour 13."""
    lines = grid(SHIPS, (72, 220, 480) if not right else (72, 300, 480), right=right)
    assert tables_of([*paragraph(50), *lines, *paragraph(170)]) == [SHIPS]


def test_table_takes_its_lines_and_no_others() -> None:
    """Behaviour 13."""
    lines = grid(SHIPS)
    [(table, used)] = aligned_tables([*paragraph(50), *lines, *paragraph(170)])
    assert {id(line) for line in used} == {id(line) for line in lines}
    assert table.bbox == (72, 100, 410, 153)


def test_empty_cells_keep_their_place() -> None:
    """Behaviour 13."""
    rows = (
        SHIPS[0],
        ("Aurora", "", "1,200"),
        ("", "Pier Seven", "800"),
        ("Cormorant", "Ystad", ""),
    )
    assert tables_of(grid(rows)) == [rows]


def test_cells_of_several_lines_are_one_row() -> None:
    """Behaviour 13."""
    lines = [
        *grid([SHIPS[0]], top=100),
        *grid([("Aurora", "Old Mole, east", "1,200"), ("", "of the lighthouse", "")], top=124),
        *grid([("Bold Venture of", "Pier Seven", "800"), ("the North", "", "")], top=162),
        *grid([SHIPS[3]], top=200),
    ]
    [rows] = tables_of(lines)
    assert rows == (
        SHIPS[0],
        ("Aurora", "Old Mole, east of the lighthouse", "1,200"),
        ("Bold Venture of the North", "Pier Seven", "800"),
        SHIPS[3],
    )


def test_full_rows_are_rows_however_close_they_stand() -> None:
    """Behaviour 13."""
    lines = [*grid([SHIPS[0]], top=100), *grid(SHIPS[1:], top=120, pitch=11.5)]
    assert tables_of(lines) == [SHIPS]


def test_head_over_several_columns_stands_once() -> None:
    """Behaviour 13."""
    xs = (72, 220, 300, 380)
    body = (
        ("Ship", "In", "Out", "Total"), ("Aurora", "3", "4", "7"), ("Brig", "1", "1", "2"),
    )  # fmt: skip
    head = [piece("Voyages of the year", 225, 100 - PITCH)]
    [rows] = tables_of([piece("Ships", 72, 100 - PITCH), *head, *grid(body, xs)])
    assert rows == (("Ships", "Voyages of the year", "", ""), *body)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        pytest.param((("Item", "Price"), ("Lamp", "12.50"), ("Desk", "80")), {}, id="numbers"),
        pytest.param(
            (("Country", "Capital"), ("Denmark", "Copenhagen"), ("Norway", "Oslo")),
            {"bold": True},
            id="a bold head",
        ),
        pytest.param((("Name:", "Anna"), ("Town:", "Ystad"), ("Ship:", "Brig")), {}, id="keys"),
        pytest.param(
            (("Country", "Capital"), ("Denmark", "Copenhagen"), ("Norway", "Oslo")),
            {"pitch": 22.0},
            id="wide rows",
        ),
    ],
)
def test_two_columns_with_a_sign_of_a_table(
    rows: tuple[tuple[str, ...], ...], options: dict[str, float]
) -> None:
    """Behaviour 13."""
    assert tables_of(grid(rows, **options)) == [rows]


def test_right_to_left_table_is_read_from_the_right() -> None:
    """Behaviour 15."""
    rows = (("מחיר", "עיר", "שם"), ("12", "חיפה", "דוד"), ("34", "לוד", "שרה"))
    assert tables_of(grid(rows)) == [tuple(row[::-1] for row in rows)]


SHORT_PROSE = "arrivals were many in that year and"
LOOKALIKES = {
    "prose": paragraph(100, 8),
    "prose in two columns": grid([(SHORT_PROSE, SHORT_PROSE)] * 9, (72, 320)),
    "prose in three columns": grid([(SHORT_PROSE[:26],) * 3] * 9, (72, 235, 400)),
    "justified prose with wide gaps": [
        piece(text, x, 100 + PITCH * row)
        for row in range(8)
        for text, x in ((PROSE[: 30 + row], 72), (PROSE[31 + row : 70], 72 + 5 * (33 + row)))
    ],
    "a list with marks": grid([("•", "Bring a lamp"), ("•", "Open"), ("•", "Close")], (72, 90)),
    "a numbered list": grid([("1.", "Bring a lamp"), ("2.", "Open"), ("3.", "Close it")], (72, 90)),
    "two addresses": grid(
        [
            ("Harbour Office", "Anna Lindqvist"),
            ("Pier Seven", "12 Old Mole Road"),
            ("Ystad", "Lund"),
            ("Sweden", "Sweden"),
        ],
        (72, 350),
    ),
    "a table of contents": grid(
        [("Lamps ........", "3"), ("Desks ........", "9"), ("Chairs .......", "12")], (72, 400)
    ),
    "an index": grid(
        [("anchor, 3, 12", "cargo, 8", "ferry, 31–33"), ("basin, 9", "dredge, 4", "gauge, 7")] * 4
    ),
    "code": [
        Line(one.text, one.bbox, 10, monospaced=True)
        for one in grid(
            [("x = 1", "# one", "a"), ("y = 2", "# two", "b"), ("z = 3", "# three", "c")]
        )
    ],
    "a line with a date at its right": grid([("Ystad, the office", "12 May 2024")], (72, 400)),
}


@pytest.mark.parametrize("lines", LOOKALIKES.values(), ids=LOOKALIKES)
def test_what_only_looks_like_a_table(lines: list[Line]) -> None:
    """Behaviour 13."""
    assert tables_of(lines) == []
