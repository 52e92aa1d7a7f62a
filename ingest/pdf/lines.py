"""From an engine's lines to lines of layout, and the page's content turned upright."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ingest.parsed import Line
from ingest.pdf.base import PageContent, TextLine
from ingest.pdf.geometry import Matrix, transformed


def turn_to_upright(lines: Sequence[TextLine]) -> int:
    """Clockwise degrees to turn the page by so that most of its text runs to the right."""
    characters: Counter[int] = Counter()
    for line in lines:
        characters[line.direction] += sum(len(span.text) for span in line.spans)
    return -max(characters, key=lambda direction: characters[direction], default=0) % 360


def turned(content: PageContent, matrix: Matrix) -> PageContent:
    """The content with all its boxes transformed."""
    return PageContent(
        [_turned_line(line, matrix) for line in content.lines],
        [replace(shape, bbox=transformed(shape.bbox, matrix)) for shape in content.shapes],
        [transformed(box, matrix) for box in content.images],
    )


def _turned_line(line: TextLine, matrix: Matrix) -> TextLine:
    spans = [replace(span, bbox=transformed(span.bbox, matrix)) for span in line.spans]
    return replace(line, spans=spans, bbox=transformed(line.bbox, matrix))


def layout_line(raw: TextLine) -> Line:
    """The text of a line with the facts that layout decides by."""
    spans = [span for span in raw.spans if span.text.strip()] or raw.spans
    return Line(
        text=_storable("".join(span.text for span in raw.spans)),
        bbox=raw.bbox,
        font_size_points=max(span.size_points for span in spans),
        bold=all(span.bold for span in spans),
        monospaced=all(span.monospaced for span in spans),
    )


def _storable(text: str) -> str:
    """Without NUL and lone surrogates, which no store takes."""
    if text.isascii():
        return text.replace("\x00", "")
    return text.encode("utf-8", errors="ignore").decode("utf-8").replace("\x00", "")
