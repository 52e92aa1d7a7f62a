"""Tables among the blocks of their pages, also over a page break."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ingest.parsed import Table
from ingest.readers.rows import is_number
from ragplane.core.schema import BBox, Block

_SAME_EDGE_POINTS = 6.0


class OpenTable(NamedTuple):
    """A table that may go on: its last part and its header row, None without one."""

    last: Table
    header: str | None


def table_rows(
    table: Table, blocks: Sequence[Block], before: OpenTable | None
) -> tuple[list[Block], OpenTable]:
    """The rows of a table as blocks, each with its header.

    `blocks` are the others of the page so far. A table at the top of its page goes on with the one
    `before` if both have the same columns; a header that is repeated there is left out. A first
    row of numbers is no header.
    """
    rows = [_markdown_row(row) for row in table.rows]
    if before is not None and _is_on_top(table, blocks) and _goes_on(before.last, table):
        header = before.header
        rows = rows[1:] if rows[0] == header else rows
    else:
        header = None if all(map(is_number, filter(None, table.rows[0]))) else rows[0]
    return [Block("table_row", row, table.bbox, header=header) for row in rows], OpenTable(
        table, header
    )


def _goes_on(before: Table, table: Table) -> bool:
    same_columns = len(before.rows[0]) == len(table.rows[0])
    return same_columns and abs(before.bbox.x0 - table.bbox.x0) < _SAME_EDGE_POINTS


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _is_on_top(table: Table, blocks: Sequence[Block]) -> bool:
    return all(block.bbox is None or block.bbox.y0 > table.bbox.y0 for block in blocks)


def insert_rows(blocks: list[Block], rows: Sequence[Block], box: BBox) -> list[Block]:
    """Put a table's rows between what stands above and below it in its own column."""
    placed = [(i, block.bbox) for i, block in enumerate(blocks) if block.bbox]
    column = [(i, other) for i, other in placed if other.x0 < box.x1 and box.x0 < other.x1]
    column = column or placed
    after = column[-1][0] + 1 if column else 0
    position = next((i for i, other in column if other.y0 >= box.y0), after)
    return [*blocks[:position], *rows, *blocks[position:]]
