"""Read the small markup of the content files: headings, paragraphs, lists, tables, breaks."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["heading", "paragraph", "item", "table", "column", "page", "blank"]

_HEADING = re.compile(r"(#{1,4}) +(.*)")
_ITEM = re.compile(r"(- |\d+\. )(.*)", re.DOTALL)
_MARKERS: dict[str, Kind] = {
    "<<column>>": "column",
    "<<page>>": "page",
    "<<blank>>": "blank",
}


@dataclass(frozen=True)
class Block:
    """One piece of a document; `level` is the heading depth, `label` the mark of a list item."""

    kind: Kind
    text: str = ""
    level: int = 0
    label: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


def parse(source: str) -> list[Block]:
    """Split a content file into blocks; a blank line ends a block."""
    blocks: list[Block] = []
    for chunk in re.split(r"\n\s*\n", source.strip()):
        blocks.extend(_chunk(chunk.strip().split("\n")))
    return blocks


def _chunk(lines: list[str]) -> list[Block]:
    if lines[0] in _MARKERS:
        return [Block(_MARKERS[lines[0]])]
    if heading := _HEADING.fullmatch(lines[0]):
        head = Block("heading", heading[2], level=len(heading[1]))
        return [head, *(_chunk(lines[1:]) if lines[1:] else [])]
    if lines[0].startswith("|"):
        return [Block("table", rows=_rows(lines))]
    if _ITEM.match(lines[0]):
        return _items(lines)
    return [Block("paragraph", " ".join(lines))]


def _rows(lines: list[str]) -> tuple[tuple[str, ...], ...]:
    cells = [tuple(cell.strip() for cell in line.strip("| ").split("|")) for line in lines]
    return tuple(row for row in cells if set("".join(row)) != {"-"})


def _items(lines: list[str]) -> list[Block]:
    items: list[Block] = []
    for line in lines:
        if match := _ITEM.match(line):
            items.append(Block("item", match[2].strip(), label=match[1].strip()))
        else:
            last = items.pop()
            items.append(Block("item", f"{last.text} {line.strip()}", label=last.label))
    return items
