"""From a page image to paragraphs and tables in points: recognise, make upright, scale, arrange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from ingest.arrange import Paragraph, arranged
from ingest.ocr import OcrEngine, OcrLine, Pixels, page_confidence, read_upright
from ingest.ocr.resolution import base_dpi, finer_dpi
from ingest.ocr.rules import ruled_strokes
from ingest.ocr.upright import laid
from ingest.parsed import Line, Table
from ingest.tables import Word, ruled_tables
from ragplane.core.errors import StageError, describe
from ragplane.core.schema import BBox, Note

_CAP_TO_FONT_SIZE = 0.75  # a recognised box is about 4/3 of the font size high
_TABLE_FILLED_SHARE = 0.5  # less is the grid of a chart
_MIN_CONFIDENCE = 0.5  # below, what was recognised is noise more often than text


@dataclass(frozen=True, slots=True)
class Scan:
    """What was read on a page image. Boxes are in points of the page once it is upright.

    `rotation` is how far it was turned for that, clockwise, and `skew_degrees` how far its lines
    fell to the right before they were made straight. `confidence` counts every line that was
    found, also those too doubtful to be kept, which `notes` tells of; None where there was none.
    `line_height_pixels` is that of the usual line.
    """

    paragraphs: tuple[Paragraph, ...]
    tables: tuple[Table, ...]
    rotation: int
    skew_degrees: float
    confidence: float | None
    line_height_pixels: float
    notes: tuple[Note, ...] = ()


def read_page(
    engine: OcrEngine,
    render: Callable[[float], Pixels],
    size_points: tuple[float, float],
    max_pixels: int,
    page: int,
    *,
    finest_dpi: float = float("inf"),
) -> Scan:
    """Read a page that `render` draws at any dpi, again at a higher one if small print asks for it.

    No image is over `max_pixels`, none finer than `finest_dpi`. Raises StageError `ocr` with the
    number `page` and whatever the engine failed of.
    """
    dpi = min(base_dpi(*size_points, max_pixels), finest_dpi)
    scan = recognised(engine, render(dpi), dpi, page)
    if scan.confidence is None:
        return scan
    finer = finer_dpi(dpi, scan.confidence, scan.line_height_pixels, size_points, max_pixels)
    if finer is None or min(finer, finest_dpi) <= dpi:
        return scan
    again = recognised(engine, render(min(finer, finest_dpi)), min(finer, finest_dpi), page)
    better = again.confidence is not None and again.confidence > scan.confidence
    return again if better else scan


def recognised(engine: OcrEngine, image: Pixels, dpi: float, page: int) -> Scan:
    """Read an image of a page at `dpi`. Raises as `read_page`."""
    try:
        upright = read_upright(engine, image)
    except Exception as error:  # errors of ONNX Runtime and OpenCV have no class in common
        # RapidOCR gives its errors a traceback for a message; the cause says what it was.
        raise StageError("ocr", describe(error.__cause__ or error), page=page) from error
    kept = [found for found in upright.lines if found.confidence >= _MIN_CONFIDENCE]
    lines = [_line(found, dpi) for found in kept]
    heights = [found.bbox.y1 - found.bbox.y0 for found in upright.lines]
    ruled = _ruled_tables(laid(image, upright.rotation, upright.skew_degrees), dpi, lines)
    paragraphs, tables = arranged(lines, ruled, upright.width_pixels * 72.0 / dpi)
    return Scan(
        paragraphs=paragraphs,
        tables=tables,
        rotation=upright.rotation,
        skew_degrees=upright.skew_degrees,
        confidence=page_confidence((found.characters, found.confidence) for found in upright.lines),
        line_height_pixels=median(heights or [0.0]),
        notes=_notes(len(upright.lines) - len(kept)),
    )


def _line(found: OcrLine, dpi: float) -> Line:
    box = _points(found.bbox, dpi)
    size = (box.y1 - box.y0) * _CAP_TO_FONT_SIZE
    return Line(found.text, box, size, confidence=found.confidence)


def _ruled_tables(image: Pixels, dpi: float, lines: Sequence[Line]) -> list[Table]:
    if not lines:
        return []
    strokes = [_points(box, dpi) for box in ruled_strokes(image, dpi)]
    tables = ruled_tables(strokes, [Word(line.text, line.bbox) for line in lines])
    return [table for table in tables if _filled_share(table) >= _TABLE_FILLED_SHARE]


def _filled_share(table: Table) -> float:
    cells = [cell for row in table.rows for cell in row]
    return sum(map(bool, cells)) / len(cells)


def _points(box: BBox, dpi: float) -> BBox:
    return BBox(*(edge * 72.0 / dpi for edge in box))


def _notes(illegible: int) -> tuple[Note, ...]:
    if not illegible:
        return ()
    return (Note("degraded", f"lines left out that OCR could not read: {illegible}"),)
