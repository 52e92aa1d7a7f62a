"""Text that a reader of the page cannot see: taken out of the text and kept as evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from ingest.ocr import Pixels
from ingest.pdf.base import PageContent, PdfPage, Shape, TextLine, TextSpan
from ingest.pdf.geometry import bounds, coverage, holding, holds_centre
from ragplane.core.schema import BBox, Note

_DPI = 96.0
_MAX_PIXELS = 4_000_000
_TINY_POINTS = 1.0
_LIGHT = 0xE6  # each channel of a colour that may vanish on paper
_MIN_FILL_POINTS = 6.0  # a narrower fill is a rule, not a background
_UNIFORM = 24  # channel steps between the pixels of a patch that shows nothing
_NEAR = 60  # channel steps to the text's colour, for a pixel that may be of the text
_MAX_NOTE_CHARACTERS = 500


def quarantine(
    page: PdfPage, content: PageContent, scan_image_coverage: float
) -> tuple[PageContent, tuple[Note, ...]]:
    """The content without its hidden text, and notes of kind `hidden` about what was taken out.

    Invisible text over an image, and text under an image that covers the page, is the layer of a
    searchable scan and stays: `ingest.triage` judges it.
    """
    looked_at = _Looks(page, content, scan_image_coverage)
    lines: list[TextLine] = []
    found: list[tuple[str, TextSpan]] = []
    for line in content.lines:
        reasons = [looked_at.reason(span) for span in line.spans]
        if not any(reasons):
            lines.append(line)
            continue
        pairs = list(zip(reasons, line.spans, strict=True))
        found.extend((reason, span) for reason, span in pairs if reason)
        if kept := [span for reason, span in pairs if not reason]:
            lines.append(TextLine(kept, bounds(span.bbox for span in kept), line.direction))
    if not found:
        return content, ()
    return replace(content, lines=lines), tuple(_notes(found))


def _notes(found: Sequence[tuple[str, TextSpan]]) -> list[Note]:
    """One note for each run of spans that are hidden in the same way."""
    notes = []
    for reason, group in groupby(found, key=lambda pair: pair[0]):
        spans = [span for _, span in group]
        text = " ".join(" ".join(span.text for span in spans).split())
        if text:
            cut = text[:_MAX_NOTE_CHARACTERS]
            notes.append(Note("hidden", f"{reason}: {cut}", bounds(span.bbox for span in spans)))
    return notes


class _Looks:
    """Why a span cannot be seen. Renders the page once, and only if a span is suspicious."""

    def __init__(self, page: PdfPage, content: PageContent, scan_image_coverage: float) -> None:
        self._page = page
        self._box = BBox(0, 0, page.width_points, page.height_points)
        self._images = content.images
        self._is_scan = coverage(content.images, self._box) >= scan_image_coverage
        self._fills = [shape for shape in content.shapes if _is_background(shape)]
        self._fill_colours = {shape.colour for shape in self._fills}
        self._pixels: Pixels | None = None

    def reason(self, span: TextSpan) -> str:
        """Empty for text in plain sight."""
        if not holds_centre(self._box, span.bbox):
            return "off the page"
        if not span.painted:
            has_image = any(holds_centre(image, span.bbox) for image in self._images)
            return "" if has_image else "invisible"
        if span.size_points < _TINY_POINTS and span.text.strip():
            return "too small to see"
        if span.covered == "image":
            under = not self._is_scan and not self._shows(span, near_colour=True)
            return "under an image" if under else ""
        if span.covered == "shape" or self._may_vanish(span):
            return "" if self._shows(span) else "in the colour of its background"
        return ""

    def _may_vanish(self, span: TextSpan) -> bool:
        colour = span.colour
        if colour & 0xFF >= _LIGHT and colour >> 8 & 0xFF >= _LIGHT and colour >> 16 >= _LIGHT:
            return True
        if colour not in self._fill_colours:
            return False
        fills = [shape.bbox for shape in self._fills if shape.colour == colour]
        return bool(holding(fills, [span.bbox]).any())

    def _shows(self, span: TextSpan, near_colour: bool = False) -> bool:
        """Whether the pixels of the span differ, and some are of its colour if that matters."""
        if not span.text.strip():
            return True
        patch = self._patch(span.bbox)
        if not patch.size or int(np.ptp(patch, axis=(0, 1)).max()) <= _UNIFORM:
            return False
        if not near_colour:
            return True
        colour = [span.colour >> shift & 0xFF for shift in (16, 8, 0)]
        distance = np.abs(patch.astype(np.int16) - np.array(colour, dtype=np.int16)).max(axis=2)
        return bool((distance <= _NEAR).any())

    def _patch(self, box: BBox) -> Pixels:
        if self._pixels is None:
            square_inches = max(self._box.x1 * self._box.y1 / 72**2, 1e-6)
            self._pixels = self._page.render(min(_DPI, (_MAX_PIXELS / square_inches) ** 0.5))
        height, width = self._pixels.shape[:2]
        x, y = width / self._box.x1, height / self._box.y1
        inset = 0.15 * (box.y1 - box.y0)  # neighbours and rules touch the edges
        rows = slice(max(0, int((box.y0 + inset) * y)), max(0, int((box.y1 - inset) * y) + 1))
        return self._pixels[rows, max(0, int(box.x0 * x)) : max(0, int(box.x1 * x) + 1)]


def _is_background(shape: Shape) -> bool:
    x0, y0, x1, y1 = shape.bbox
    return not shape.stroked and min(x1 - x0, y1 - y0) >= _MIN_FILL_POINTS
