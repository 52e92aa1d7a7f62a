"""Tables on a sheet, parted by empty rows and columns."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.readers.regions import Row, grid, regions


def sheet(*lines: str) -> list[Row]:
    """Cells of one character or more between spaces; `.` is an empty one."""
    rows = []
    for index, line in enumerate(lines):
        cells = {column: text for column, text in enumerate(line.split()) if text != "."}
        if cells:
            rows.append((index, cells))
    return rows


def shapes(rows: Sequence[Row]) -> list[list[list[str]]]:
    return [grid(region) for region in regions(rows)]


def test_empty_row_parts_two_tables() -> None:
    assert shapes(sheet("a b", "1 2", "", "c d", "3 4")) == [
        [["a", "b"], ["1", "2"]],
        [["c", "d"], ["3", "4"]],
    ]


def test_numbers_below_one_empty_row_go_on_with_the_table() -> None:
    assert shapes(sheet("a b", "", "1 2", "", "all 3")) == [[["a", "b"], ["1", "2"], ["all", "3"]]]
    assert len(shapes(sheet("a b", "", "", "1 2"))) == 2


def test_wide_gap_of_columns_parts_two_tables_and_a_narrow_one_is_dropped() -> None:
    assert shapes(sheet("a b . . c d", "1 2 . . 3 4")) == [
        [["a", "b"], ["1", "2"]],
        [["c", "d"], ["3", "4"]],
    ]
    assert shapes(sheet("a . b", "1 . 2")) == [[["a", "b"], ["1", "2"]]]


def test_rows_are_parted_again_within_each_side() -> None:
    found = shapes(sheet("a b . . .", "1 2 . . c", ". . . . .", "d e . . 5"))
    assert found == [[["a", "b"], ["1", "2"]], [["d", "e"]], [["c"]], [["5"]]]


def test_missing_cells_keep_the_columns_in_place() -> None:
    assert shapes(sheet("a b c", "1 . 3")) == [[["a", "b", "c"], ["1", "", "3"]]]


def test_empty_sheet_has_no_regions() -> None:
    assert shapes([]) == []
