"""Tables as blocks."""

from __future__ import annotations

import pytest

from ingest.readers.rows import Cell, is_number, spread, table_blocks


def texts(rows: list[list[str]]) -> list[tuple[str, str | None]]:
    return [(block.text, block.header) for block in table_blocks(rows)]


def test_every_row_carries_the_first_as_its_header() -> None:
    """Behaviour 13."""
    assert texts([["", ""], ["Item", "Price"], ["a|b", " 1\n2 "], [" ", ""]]) == [
        ("| Item | Price |", "| Item | Price |"),
        ("| a\\|b | 1 2 |", "| Item | Price |"),
    ]


def test_row_of_numbers_is_no_header() -> None:
    assert texts([["1", "2.5 %"], ["3", "4"]]) == [("| 1 | 2.5 % |", None), ("| 3 | 4 |", None)]


def test_table_without_text_gives_nothing() -> None:
    assert texts([["", " "], []]) == []


def test_merged_cells_stand_once_and_the_columns_keep_their_places() -> None:
    """Behaviour 13."""
    rows = [
        [Cell("wide", columns=2), Cell("tall", rows=3)],
        [Cell("a"), Cell("b")],
        [Cell("block", columns=2, rows=2)],
        [Cell("c")],
    ]
    assert list(spread(rows)) == [
        ["wide", "", "tall"],
        ["a", "b", ""],
        ["block", "", ""],
        ["", "", "c"],
    ]


@pytest.mark.parametrize("columns", [0, -3, 10_000_000])
def test_spans_without_sense_are_bounded(columns: int) -> None:
    [row] = spread([[Cell("a", columns=columns), Cell("b")]])
    assert (row[0], row[-1]) == ("a", "b")
    assert len(row) <= 101


@pytest.mark.parametrize("text", ["1", "-1,234.5", "(17)", "12 %", "1'000", "0.5"])
def test_numbers(text: str) -> None:
    assert is_number(text)


@pytest.mark.parametrize("text", ["", "a1", "-", "2019 A", "1" * 50])
def test_not_numbers(text: str) -> None:
    assert not is_number(text)
