"""From a page image to raw lines: recognise, turn upright, scale to points, group, order."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.ocr import OcrEngine, OcrLine, Pixels, read_upright
from ingest.order import reading_order
from ingest.parsed import Line
from ragplane.core.errors import StageError, describe
from ragplane.core.schema import BBox

_LINE_GAP = 0.9  # a larger gap than this many line heights ends a paragraph
_CAP_TO_FONT_SIZE = 0.75  # a recognised box is about 4/3 of the font size high
_MIN_CONFIDENCE = 0.5


def read_scan(
    engine: OcrEngine, image: Pixels, dpi: float, page: int
) -> tuple[tuple[tuple[Line, ...], ...], int]:
    """Paragraphs of the image in reading order, boxes in points, and the rotation applied.

    Raises StageError `ocr` with the number `page` and whatever the engine failed of.
    """
    try:
        upright = read_upright(engine, image)
    except Exception as error:
        raise StageError("ocr", describe(error), page=page) from error
    scale = 72.0 / dpi
    lines = [_line(found, scale) for found in upright.lines if found.confidence >= _MIN_CONFIDENCE]
    rows = _rows(lines)
    ordered = reading_order(rows, lambda line: line.bbox, upright.width_pixels * scale)
    return tuple(_paragraphs(ordered)), upright.rotation


def upright_size(width: float, height: float, rotation: int) -> tuple[float, float]:
    """The size of a page once it is turned, the one that the boxes of its lines refer to."""
    return (height, width) if rotation in (90, 270) else (width, height)


def _line(found: OcrLine, scale: float) -> Line:
    box = BBox(*(edge * scale for edge in found.bbox))
    size = (box.y1 - box.y0) * _CAP_TO_FONT_SIZE
    return Line(found.text, box, size, confidence=found.confidence)


def _rows(lines: Sequence[Line]) -> list[Line]:
    """Join pieces of one text line that the detector split at word gaps."""
    rows: list[Line] = []
    for line in sorted(lines, key=lambda line: (line.bbox.y0 + line.bbox.y1, line.bbox.x0)):
        partner = next((row for row in rows if _continues_row(row, line)), None)
        if partner is None:
            rows.append(line)
        else:
            rows[rows.index(partner)] = _joined(partner, line)
    return rows


def _continues_row(row: Line, line: Line) -> bool:
    height = min(row.bbox.y1 - row.bbox.y0, line.bbox.y1 - line.bbox.y0)
    overlap = min(row.bbox.y1, line.bbox.y1) - max(row.bbox.y0, line.bbox.y0)
    gap = max(row.bbox.x0, line.bbox.x0) - min(row.bbox.x1, line.bbox.x1)
    return overlap > 0.6 * height and gap < 0.8 * height


def _joined(a: Line, b: Line) -> Line:
    left, right = sorted((a, b), key=lambda line: line.bbox.x0)
    box = BBox(
        left.bbox.x0,
        min(a.bbox.y0, b.bbox.y0),
        max(a.bbox.x1, b.bbox.x1),
        max(a.bbox.y1, b.bbox.y1),
    )
    confidence = min(a.confidence or 0.0, b.confidence or 0.0)
    size = max(a.font_size_points, b.font_size_points)
    return Line(f"{left.text} {right.text}", box, size, confidence=confidence)


def _paragraphs(lines: Sequence[Line]) -> list[tuple[Line, ...]]:
    paragraphs: list[list[Line]] = []
    for line in lines:
        if paragraphs and _same_paragraph(paragraphs[-1][-1], line):
            paragraphs[-1].append(line)
        else:
            paragraphs.append([line])
    return [tuple(paragraph) for paragraph in paragraphs]


def _same_paragraph(above: Line, below: Line) -> bool:
    height = min(above.bbox.y1 - above.bbox.y0, below.bbox.y1 - below.bbox.y0)
    gap = below.bbox.y0 - above.bbox.y1
    alike = 0.75 < below.font_size_points / max(above.font_size_points, 0.1) < 1.33
    return -height < gap < _LINE_GAP * height and alike
