"""Headings, told from running text by the facts of their font."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ingest.parsed import Line, RawPage
from ingest.rows import is_upended
from ragplane.core.schema import Route

_HEADING_SCALE = 1.12
_OCR_HEADING_SCALE = 1.4  # the height of a recognised line is a rough measure of its font size
_HEADING_CHARACTERS = 120
_HEADING_LINES = 3
# An amount, perhaps behind a currency: the large print of a chart or a box of figures.
_AMOUNT = re.compile(r"[^\w\s]{0,2}\s?\d{1,3}(?:(?:,\d{2,3})+|(?:[.'\u2019]\d{3})+)(?:[.,]\d+)?\b")


@dataclass(frozen=True, slots=True)
class Fonts:
    """The font size of most characters and the distinct sizes clearly above it, largest first."""

    body_points: float
    heading_points: tuple[float, ...]

    def is_large(self, size_points: float, route: Route) -> bool:
        """Whether text of this size is set off from the body."""
        scale = _OCR_HEADING_SCALE if route == "ocr" else _HEADING_SCALE
        return size_points >= self.body_points * scale

    def level(self, lines: Sequence[Line], text: str, route: Route) -> int:
        """The heading level of a paragraph, 1 the highest, or 0 for running text."""
        if len(lines) > _HEADING_LINES or len(text) > _HEADING_CHARACTERS:
            return 0
        if text.endswith((",", ";")) or not any(char.isalpha() for char in text):
            return 0
        if _AMOUNT.match(text) or any(map(is_upended, lines)):
            return 0
        size = round(max(line.font_size_points for line in lines), 1)
        if self.is_large(size, route):
            return 1 + sum(1 for other in self.heading_points if other > size)
        bold = all(line.bold for line in lines) and size >= self.body_points - 0.5
        return 1 + len(self.heading_points) if bold and not text.endswith((".", ":")) else 0


def document_fonts(raw_pages: Sequence[RawPage]) -> Fonts:
    """What sizes the document is set in. OCR pages do not vote on the sizes of headings."""
    sizes: Counter[float] = Counter()
    voted: set[float] = set()
    for raw in raw_pages:
        for paragraph in raw.paragraphs:
            for line in paragraph:
                if is_upended(line):
                    continue
                size = round(line.font_size_points, 1)
                sizes[size] += len(line.text)
                if raw.route != "ocr":
                    voted.add(size)
    body = max(sizes, key=lambda size: (sizes[size], -size)) if sizes else 0.0
    large = sorted((size for size in voted if size >= body * _HEADING_SCALE), reverse=True)
    return Fonts(body, tuple(large))
