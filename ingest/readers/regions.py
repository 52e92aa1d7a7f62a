"""The tables on a sheet: groups of cells with empty rows or columns between them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ingest.readers.rows import is_number

Row = tuple[int, Mapping[int, str]]  # its index and its cells by column; none of them empty

_MIN_COLUMN_GAP = 2  # one empty column is a spacer within a table


def regions(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Groups of rows that form one table or text, top to bottom, then left to right.

    An empty row ends a table unless the next row goes on with numbers under the same columns (a
    gap below a header, a line of totals). `rows` are in order and hold at least one cell each.
    """
    for band in _bands(rows):
        for part in _sides(band):
            yield from _bands(part)


def grid(region: Sequence[Row]) -> list[list[str]]:
    """The cells of a region as rows of one length, without columns that are empty in all rows."""
    columns = sorted({column for _, cells in region for column in cells})
    return [[cells.get(column, "") for column in columns] for _, cells in region]


def _bands(rows: Sequence[Row]) -> Iterator[list[Row]]:
    band: list[Row] = []
    for row in rows:
        if band and row[0] - band[-1][0] > 1 and not _continues(band, row):
            yield band
            band = []
        band.append(row)
    if band:
        yield band


def _continues(band: Sequence[Row], row: Row) -> bool:
    index, cells = row
    above, cells_above = band[-1]
    is_one_empty_row = index - above == 2
    overlap = len(cells.keys() & cells_above.keys())
    numbers = sum(1 for text in cells.values() if is_number(text))
    return is_one_empty_row and min(len(cells), len(cells_above), overlap) > 1 and numbers > 0


def _sides(band: Sequence[Row]) -> Iterator[list[Row]]:
    """The band cut at wide empty columns."""
    columns = sorted({column for _, cells in band for column in cells})
    starts = {columns[0]: 0}
    for left, right in pairwise(columns):
        starts[right] = starts[left] + (right - left > _MIN_COLUMN_GAP)
    sides: list[list[Row]] = [[] for _ in range(starts[columns[-1]] + 1)]
    for index, cells in band:
        parts: dict[int, dict[int, str]] = {}
        for column, text in cells.items():
            parts.setdefault(starts[column], {})[column] = text
        for side, part in parts.items():
            sides[side].append((index, part))
    yield from sides
