"""Tables as blocks: one Markdown row each, every row with its table's header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragplane.core.schema import Block

_MAX_SPAN = 100  # a cell over more columns, or more cells over a row, is a mistake or an attack
_NUMBER = re.compile(r"[-+(]?[\d\s.,'%]*\d[\d\s.,'%)]*")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell and over how many columns and rows it is merged."""

    text: str
    columns: int = 1
    rows: int = 1


def table_blocks(rows: Iterable[Sequence[str]]) -> Iterator[Block]:
    """A `table_row` for each row that holds text. The first is the header, unless all numbers."""
    header: str | None = None
    is_first = True
    for row in rows:
        cells = [_escaped(text) for text in row]
        if not any(cells):
            continue
        markdown = "| " + " | ".join(cells) + " |"
        if is_first:
            header = None if all(is_number(text) for text in cells if text) else markdown
            is_first = False
        yield Block("table_row", markdown, header=header)


def spread(rows: Iterable[Iterable[Cell]]) -> Iterator[list[str]]:
    """Rows of texts: a merged cell stands once, at its top left, and is empty elsewhere."""
    covered: dict[int, int] = {}  # column -> rows below that a merged cell still covers
    for row in rows:
        texts: list[str] = []
        below: dict[int, int] = {}
        for cell in row:
            _skip_covered(texts, covered, below)
            for part in range(min(max(1, cell.columns), _MAX_SPAN)):
                if cell.rows > 1 and len(below) < _MAX_SPAN:
                    below[len(texts)] = cell.rows - 1
                texts.append("" if part else cell.text)
        _skip_covered(texts, covered, below)
        covered = below | {column: left - 1 for column, left in covered.items() if left > 1}
        yield texts


def is_number(text: str) -> bool:
    """Whether a cell's text is a number, with separators, sign or percent."""
    return len(text) <= 40 and _NUMBER.fullmatch(text) is not None


def _skip_covered(texts: list[str], covered: dict[int, int], below: dict[int, int]) -> None:
    while (left := covered.pop(len(texts), 0)) > 0:
        if left > 1:
            below[len(texts)] = left - 1
        texts.append("")


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
