"""PDF through PyMuPDF: each page is measured, routed, and read by its text layer or by OCR."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pymupdf

from ingest.layout import blocks_of_pages
from ingest.ocr import Pixels
from ingest.order import reading_order
from ingest.parsed import Line, ParsedDocument, RawPage, Table
from ingest.readers.base import ReadContext, title_or_name
from ingest.scanned import read_scan, upright_size
from ingest.tables import Word, ruled_tables
from ingest.triage import Decision, decide, unmapped_share
from ragplane.core.errors import StageError, describe
from ragplane.core.schema import BBox, PageSignals

_OCR_DPI = 150.0
_MAX_PIXELS = 12_000_000
_INVISIBLE = 3  # text render mode 3: neither filled nor stroked (ISO 32000-1, 9.3.6)
_MANY_DRAWINGS = 2000  # beyond this a page is a drawing, not a form with rules
_TEXT_FLAGS = pymupdf.TEXTFLAGS_DICT & ~pymupdf.TEXT_PRESERVE_IMAGES
_BOLD, _MONOSPACED = 1 << 4, 1 << 3


def read_pdf(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read a PDF page by page.

    Raises StageError `parse` for a file that is encrypted, broken beyond repair or without pages,
    and StageError `ocr` naming the page that failed.
    """
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    try:
        document = pymupdf.open(stream=content, filetype="pdf")
    except (pymupdf.FileDataError, pymupdf.EmptyFileError, RuntimeError) as error:
        raise StageError("parse", f"not a readable PDF ({error})") from error
    with document:
        if document.needs_pass:
            raise StageError("parse", "encrypted: the file needs a password")
        if document.page_count == 0:
            raise StageError("parse", "the PDF has no pages")
        raw_pages = [_read_page(document, number, context) for number in range(len(document))]
        title = (document.metadata or {}).get("title")
    pages = tuple(blocks_of_pages(raw_pages))
    return ParsedDocument(title_or_name(title, context.name), "application/pdf", pages)


def _read_page(document: Any, index: int, context: ReadContext) -> RawPage:
    started = time.perf_counter()
    try:
        page = document[index]
        text = page.get_text("dict", flags=_TEXT_FLAGS)
        drawings = page.get_cdrawings()
        signals = _signals(page, text, drawings)
    except (RuntimeError, ValueError) as error:
        raise StageError("parse", describe(error), page=index + 1) from error
    decision = decide(signals, context.thresholds)
    paragraphs: tuple[tuple[Line, ...], ...] = ()
    tables: tuple[Table, ...] = ()
    turned = 0
    if decision.route == "ocr":
        paragraphs, turned = _recognise(page, context)
    elif decision.route == "text":
        paragraphs, tables = _read_text(page, text, drawings)
    return _raw_page(page, signals, decision, turned, paragraphs, tables, started)


def _raw_page(
    page: Any,
    signals: PageSignals,
    decision: Decision,
    turned: int,
    paragraphs: tuple[tuple[Line, ...], ...],
    tables: tuple[Table, ...],
    started: float,
) -> RawPage:
    width, height = upright_size(float(page.rect.width), float(page.rect.height), turned)
    return RawPage(
        number=page.number + 1,
        width_points=width,
        height_points=height,
        rotation=(int(page.rotation) + turned) % 360,
        route=decision.route,
        reason=decision.reason,
        signals=signals,
        seconds=time.perf_counter() - started,
        paragraphs=paragraphs,
        tables=tables,
    )


def _signals(page: Any, text: dict[str, Any], drawings: list[Any]) -> PageSignals:
    content = " ".join(span["text"] for line in _dict_lines(text) for span in line["spans"])
    coverage = _image_coverage(page)
    return PageSignals(
        characters=sum(1 for char in content if not char.isspace()),
        words=len(content.split()),
        unmapped_share=unmapped_share(content),
        image_coverage=coverage,
        drawings=len(drawings),
        invisible_characters=_invisible_characters(page) if coverage > 0.3 else 0,
    )


def _image_coverage(page: Any) -> float:
    """Share of the page under images, 0 to 1; overlaps count twice and are capped."""
    area = abs(page.rect.width * page.rect.height)
    visible = pymupdf.Rect(page.rect) * page.derotation_matrix
    covered = sum(
        abs((pymupdf.Rect(info["bbox"]) & visible).get_area()) for info in page.get_image_info()
    )
    return min(1.0, covered / area) if area else 0.0


def _invisible_characters(page: Any) -> int:
    return sum(len(span["chars"]) for span in page.get_texttrace() if span["type"] == _INVISIBLE)


def _read_text(
    page: Any, text: dict[str, Any], drawings: list[Any]
) -> tuple[tuple[tuple[Line, ...], ...], tuple[Table, ...]]:
    tables = _tables(page, drawings)
    paragraphs: list[list[Line]] = []
    for block in text["blocks"]:
        lines = [
            line
            for line in (_line(raw, page.rotation_matrix) for raw in block.get("lines", []))
            if line.text.strip() and not any(_inside(line.bbox, table.bbox) for table in tables)
        ]
        paragraphs.extend(_split_styles(_joined_rows(lines)))
    ordered = reading_order(paragraphs, _paragraph_box, float(page.rect.width))
    return tuple(tuple(paragraph) for paragraph in ordered), tables


def _joined_rows(lines: list[Line]) -> list[Line]:
    """Pieces on one baseline are one line: the library splits lines at wide gaps."""
    rows: list[Line] = []
    for line in lines:
        last = rows[-1] if rows else None
        if last and abs(last.bbox.y1 - line.bbox.y1) < 2 and 0 <= line.bbox.x0 - last.bbox.x1 < 40:
            box = BBox(
                last.bbox.x0,
                min(last.bbox.y0, line.bbox.y0),
                line.bbox.x1,
                max(last.bbox.y1, line.bbox.y1),
            )
            size = max(last.font_size_points, line.font_size_points)
            text = f"{last.text.rstrip()} {line.text.lstrip()}"
            rows[-1] = Line(text, box, size, last.bold and line.bold, last.monospaced)
        else:
            rows.append(line)
    return rows


def _split_styles(lines: list[Line]) -> Iterator[list[Line]]:
    """Cut where the style changes: a heading and the text below it may share a block."""
    group: list[Line] = []
    for line in lines:
        if group and _style(group[-1]) != _style(line):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _style(line: Line) -> tuple[float, bool, bool]:
    return round(line.font_size_points), line.bold, line.monospaced


def _line(raw: dict[str, Any], to_shown: Any) -> Line:
    spans = [span for span in raw["spans"] if span["text"].strip()] or raw["spans"]
    box = pymupdf.Rect(raw["bbox"]) * to_shown
    return Line(
        text="".join(span["text"] for span in raw["spans"]).replace("\x00", ""),
        bbox=BBox(box.x0, box.y0, box.x1, box.y1),
        font_size_points=max(float(span["size"]) for span in spans),
        bold=all(bool(span["flags"] & _BOLD) for span in spans),
        monospaced=all(bool(span["flags"] & _MONOSPACED) for span in spans),
    )


def _dict_lines(text: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for block in text["blocks"]:
        yield from block.get("lines", [])


def _tables(page: Any, drawings: list[Any]) -> tuple[Table, ...]:
    if not 3 <= len(drawings) <= _MANY_DRAWINGS:
        return ()
    boxes = [_shown(item, page) for item in _strokes(drawings)]
    words = [Word(word[4], _shown(word[:4], page)) for word in page.get_text("words")]
    return tuple(ruled_tables(boxes, words))


def _strokes(drawings: list[Any]) -> Iterator[tuple[float, float, float, float]]:
    for drawing in drawings:
        for item in drawing["items"]:
            if item[0] == "l":
                (x0, y0), (x1, y1) = item[1], item[2]
                if abs(x0 - x1) < 1 or abs(y0 - y1) < 1:
                    yield min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
            elif item[0] == "re":
                yield item[1]


def _shown(box: tuple[float, float, float, float], page: Any) -> BBox:
    rect = pymupdf.Rect(box) * page.rotation_matrix
    return BBox(rect.x0, rect.y0, rect.x1, rect.y1)


def _inside(box: BBox, outer: BBox) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return outer.x0 <= x <= outer.x1 and outer.y0 <= y <= outer.y1


def _paragraph_box(lines: list[Line]) -> BBox:
    return BBox(
        min(line.bbox.x0 for line in lines),
        min(line.bbox.y0 for line in lines),
        max(line.bbox.x1 for line in lines),
        max(line.bbox.y1 for line in lines),
    )


def _recognise(page: Any, context: ReadContext) -> tuple[tuple[tuple[Line, ...], ...], int]:
    dpi = _dpi(float(page.rect.width), float(page.rect.height))
    try:
        image = _render(page, dpi)
    except (RuntimeError, ValueError) as error:
        raise StageError("parse", describe(error), page=page.number + 1) from error
    return read_scan(context.ocr, image, dpi, page.number + 1)


def _dpi(width_points: float, height_points: float) -> float:
    """The usual resolution, or less where the page would exceed the pixel budget."""
    pixels = (width_points / 72 * _OCR_DPI) * (height_points / 72 * _OCR_DPI)
    scale = min(1.0, (_MAX_PIXELS / pixels) ** 0.5) if pixels > 0 else 1.0
    return float(_OCR_DPI * scale)


def _render(page: Any, dpi: float) -> Pixels:
    zoom = pymupdf.Matrix(dpi / 72, dpi / 72)
    pixmap = page.get_pixmap(matrix=zoom, colorspace=pymupdf.csRGB, alpha=False)
    flat = np.frombuffer(pixmap.samples, dtype=np.uint8)
    return flat.reshape(pixmap.height, pixmap.stride)[:, : pixmap.width * 3].reshape(
        pixmap.height, pixmap.width, 3
    )
