"""A checked answer as blocks, through the readers of the formats that models write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ingest.parsed import Line
from ingest.readers.flowing import storable_blocks
from ingest.readers.html import parse_html
from ingest.readers.markdown import parse_markdown
from ingest.vlm.check import squeezed
from ragplane.core.schema import BBox, Block

_HTML_TABLE = re.compile(r"(<table\b.*?</table>)", re.DOTALL | re.IGNORECASE)
_MIN_LOCATED_CHARACTERS = 3


def answer_blocks(markdown: str) -> tuple[Block, ...]:
    """Headings, paragraphs, list items, table rows with their header, and code of a page.

    Tables may be written in HTML, as models do for merged cells.
    """
    parts = [part for part in _HTML_TABLE.split(markdown) if part.strip()]
    return tuple(block for part in parts for block in storable_blocks(_parsed(part)))


def located(blocks: Sequence[Block], lines: Sequence[Line]) -> tuple[Block, ...]:
    """The blocks with the boxes of the OCR lines whose text they hold; None where there is none."""
    known = [(squeezed(line.text), line.bbox) for line in lines]
    return tuple(replace(block, bbox=_box_of(squeezed(block.text), known)) for block in blocks)


def _parsed(part: str) -> Iterable[Block]:
    return parse_html(part).blocks if _HTML_TABLE.match(part) else parse_markdown(part)


def _box_of(text: str, known: Sequence[tuple[str, BBox]]) -> BBox | None:
    boxes = [box for line, box in known if len(line) >= _MIN_LOCATED_CHARACTERS and line in text]
    if not boxes:
        return None
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return BBox(min(x0), min(y0), max(x1), max(y1))
