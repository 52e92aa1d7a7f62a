"""Answers as blocks."""

from __future__ import annotations

from ingest.parsed import Line
from ingest.vlm.markdown import answer_blocks, located
from ragplane.core.schema import BBox, Block
from tests.unit.ingest.vlm.pages import ANSWER, lines_of

ROW = "| Pier | Toll |"


def test_every_kind_of_block_is_read() -> None:
    markdown = (
        "# Dues\n\nA paragraph\nover two lines.\n\n- one\n- two\n\n"
        "| Pier | Toll |\n|---|---|\n| North | 12.50 |\n| | 3 |\n\n```\nx = 1\n```\n"
    )
    assert answer_blocks(markdown) == (
        Block("heading", "Dues", level=1),
        Block("paragraph", "A paragraph over two lines."),
        Block("list_item", "- one"),
        Block("list_item", "- two"),
        Block("table_row", ROW, header=ROW),
        Block("table_row", "| North | 12.50 |", header=ROW),
        Block("table_row", "|  | 3 |", header=ROW),
        Block("code", "x = 1"),
    )
    assert answer_blocks("") == ()


def test_a_table_in_html_is_a_table() -> None:
    table = (
        "<table><tr><th>Pier</th><th>Toll</th></tr><tr><td>North</td><td>12.50</td></tr></table>"
    )
    assert answer_blocks(f"## Dues\n\n{table}\n\nThe end.") == (
        Block("heading", "Dues", level=2),
        Block("table_row", ROW, header=ROW),
        Block("table_row", "| North | 12.50 |", header=ROW),
        Block("paragraph", "The end."),
    )


def test_blocks_stand_where_the_lines_stand_that_they_hold() -> None:
    """Behaviour 17."""
    blocks = located(answer_blocks(ANSWER), lines_of())
    assert [block.bbox for block in blocks] == [
        BBox(72, 72, 400, 84),
        BBox(72, 96, 400, 108),
        BBox(72, 120, 400, 156),  # two lines
    ]


def test_a_block_that_no_line_is_in_has_no_box() -> None:
    short = Line("of", BBox(0, 0, 9, 9), 12.0)
    [block] = located([Block("paragraph", "words of a model")], [*lines_of(), short])
    assert block.bbox is None
