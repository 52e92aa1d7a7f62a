"""PDF: each page is measured, routed, and read by its text layer, by OCR, or by both."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from ingest.arrange import Paragraph
from ingest.layout import blocks_of_pages
from ingest.ocr import page_confidence
from ingest.ocr.resolution import base_dpi
from ingest.ocr.upright import laid
from ingest.parsed import Line, ParsedDocument, RawPage, Table
from ingest.pdf.base import (
    EncryptedError,
    PageContent,
    PdfError,
    PdfFile,
    PdfPage,
    open_pdf,
)
from ingest.pdf.forms import annotation_notes, with_fields, without_annotations
from ingest.pdf.geometry import transformed, turn_matrix
from ingest.pdf.hidden import quarantine
from ingest.pdf.lines import turn_to_upright, turned
from ingest.pdf.page_text import PageText, read_structure, read_text
from ingest.pdf.regions import may_hold_text, new_lines, scanned_regions
from ingest.pdf.signals import measure
from ingest.readers.base import ReadContext, title_or_name
from ingest.scanned import read_page, recognised
from ingest.shown import leaning, turned_size
from ingest.triage import Decision, decide
from ragplane.core.errors import StageError
from ragplane.core.schema import BBox, Note, PageSignals

_NOTHING = PageSignals(0, 0, 0.0, 0.0, 0)


def read_pdf(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read a PDF page by page with the engine that the context names.

    Raises StageError `parse` for a file that is encrypted, broken beyond repair, without pages or
    with too many. A page that fails is kept with its error and without text.
    """
    try:
        with open_pdf(content, context.passwords, context.pdf_engine) as file:
            _check_pages(file.page_count, context.limits.pages)
            raw_pages = [_page(file, number, context) for number in range(1, file.page_count + 1)]
            title, notes = file.title, _document_notes(file)
    except EncryptedError as error:
        raise StageError("parse", f"encrypted: {error}") from error
    except PdfError as error:
        raise StageError("parse", f"not a readable PDF ({error})") from error
    pages = tuple(blocks_of_pages(raw_pages))
    return ParsedDocument(title_or_name(title, context.name), "application/pdf", pages, notes)


def _check_pages(pages: int, limit: int) -> None:
    if pages == 0:
        raise StageError("parse", "the PDF has no pages")
    if pages > limit:
        raise StageError("parse", f"the PDF has {pages} pages, the limit is {limit}")


def _document_notes(file: PdfFile) -> tuple[Note, ...]:
    repaired = [Note("repaired", "the cross references were broken and were rebuilt")]
    try:
        found = [
            Note("attachment", f"{attachment.name} ({attachment.size_bytes} bytes)")
            for attachment in file.attachments()
        ]
    except PdfError as error:
        found = [Note("attachment", f"the list of attachments is broken ({error})")]
    return tuple((repaired if file.repaired else []) + found)


def _page(file: PdfFile, number: int, context: ReadContext) -> RawPage:
    if number in context.finished:
        return context.finished[number]
    started = time.perf_counter()
    raw = replace(_read_page(file, number, context), seconds=time.perf_counter() - started)
    context.on_page(raw)
    return raw


@dataclass(frozen=True, slots=True)
class _Measured:
    """A page, what it holds upright, and which way it is read.

    `turn` is how far its content was turned for that, clockwise in degrees.
    """

    page: PdfPage
    number: int
    content: PageContent
    notes: tuple[Note, ...]
    signals: PageSignals
    decision: Decision
    turn: int

    @property
    def width_points(self) -> float:
        return turned_size(self.page.width_points, self.page.height_points, self.turn)[0]


@dataclass(frozen=True, slots=True)
class _Body:
    """What was read on a page. `turn` and `skew_degrees` as in `RawPage`."""

    paragraphs: tuple[Paragraph, ...] = ()
    tables: tuple[Table, ...] = ()
    turn: int = 0
    skew_degrees: float = 0.0
    confidence: float | None = None
    notes: tuple[Note, ...] = ()


def _read_page(file: PdfFile, number: int, context: ReadContext) -> RawPage:
    try:
        measured = _measure(file.page(number - 1), number, context)
    except PdfError as error:
        failed = StageError("parse", f"the page cannot be read ({error})", page=number)
        return RawPage(number, 0, 0, 0, "text", "not measured", _NOTHING, 0, error=failed)
    try:
        body = _read(measured, context)
        return _second_reading(measured, body, _raw_page(measured, body), context)
    except StageError as error:
        return _raw_page(measured, _Body(), error)
    except PdfError as error:
        failed = StageError("parse", f"the page cannot be read ({error})", page=number)
        return _raw_page(measured, _Body(), failed)


def _raw_page(measured: _Measured, body: _Body, error: StageError | None = None) -> RawPage:
    page = measured.page
    width, height = turned_size(page.width_points, page.height_points, body.turn)
    return RawPage(
        number=measured.number,
        width_points=width,
        height_points=height,
        rotation=(page.rotation + body.turn) % 360,
        route=measured.decision.route,
        reason=measured.decision.reason,
        signals=measured.signals,
        seconds=0.0,
        paragraphs=body.paragraphs,
        tables=body.tables,
        turn=body.turn,
        skew_degrees=body.skew_degrees,
        confidence=body.confidence,
        notes=measured.notes + body.notes,
        error=error,
    )


def _measure(page: PdfPage, number: int, context: ReadContext) -> _Measured:
    width, height = page.width_points, page.height_points
    if width <= 0 or height <= 0:
        raise PdfError(f"the page has no area ({width:g} x {height:g} points)")
    content, hidden = quarantine(page, page.content(), context.thresholds.scan_image_coverage)
    annotations, fields = page.annotations(), page.fields()
    if annotations:
        content = without_annotations(content, annotations)
    if fields:
        content = with_fields(content, fields)
    turn = turn_to_upright(content.lines)
    if turn:
        content = turned(content, turn_matrix(turn, width, height))
    signals = measure(content, *turned_size(width, height, turn), page.rotation)
    decision = decide(signals, context.thresholds)
    notes = hidden + annotation_notes(annotations)
    return _Measured(page, number, content, notes, signals, decision, turn)


def _read(measured: _Measured, context: ReadContext) -> _Body:
    page, route = measured.page, measured.decision.route
    if route == "blank":
        return _Body()
    if route == "ocr":
        return _recognise(measured, context)
    lines, confidence, notes = _recognise_regions(measured, context)
    structure = page.structure() if route == "layout" and not measured.turn else None
    content, width = measured.content, measured.width_points
    if structure is not None:
        paragraphs, tables = read_structure(page, content, lines, width, structure)
    else:
        paragraphs, tables = _read_layer(measured, lines)
    return _Body(paragraphs, tables, turn=measured.turn, confidence=confidence, notes=notes)


def _recognise(measured: _Measured, context: ReadContext) -> _Body:
    page = measured.page
    size = page.width_points, page.height_points
    scan = read_page(context.ocr, page.render, size, context.limits.pixels, measured.number)
    is_scan = measured.signals.image_coverage >= context.thresholds.scan_image_coverage
    if scan.paragraphs or scan.tables or is_scan:
        return _Body(
            paragraphs=scan.paragraphs,
            tables=scan.tables,
            turn=scan.rotation,
            skew_degrees=scan.skew_degrees,
            confidence=scan.confidence,
            notes=scan.notes,
        )
    # Letters that the OCR does not know, say: a doubtful layer is more than nothing.
    paragraphs, tables = _read_layer(measured, [])
    kept = Note("degraded", "ocr: nothing was recognised; the text layer is kept")
    notes = (*scan.notes, kept) if paragraphs or tables else scan.notes
    return _Body(paragraphs, tables, turn=measured.turn, confidence=scan.confidence, notes=notes)


def _read_layer(measured: _Measured, lines: list[Line]) -> PageText:
    """The page by its text layer, with recognised `lines` of regions that have none."""
    page, turn = measured.page, measured.turn
    matrix = turn_matrix(turn, page.width_points, page.height_points) if turn else None
    return read_text(page, measured.content, lines, measured.width_points, matrix)


def _second_reading(
    measured: _Measured, body: _Body, raw: RawPage, context: ReadContext
) -> RawPage:
    """The recognised page as a vision model reads it, if there is one and OCR is not enough."""
    if context.vlm is None or raw.route != "ocr":
        return raw
    page = measured.page
    dpi = base_dpi(page.width_points, page.height_points, context.limits.pixels)
    return context.vlm.improve(raw, laid(page.render(dpi), raw.turn, raw.skew_degrees))


def _recognise_regions(
    measured: _Measured, context: ReadContext
) -> tuple[list[Line], float | None, tuple[Note, ...]]:
    """Lines of images with text of their own on a page that is otherwise text."""
    page, content, limits = measured.page, measured.content, context.thresholds
    box = BBox(0, 0, page.width_points, page.height_points)
    is_scan = measured.signals.image_coverage >= limits.scan_image_coverage
    lines: list[Line] = []
    notes: tuple[Note, ...] = ()
    if not content.images or is_scan or measured.turn:
        return lines, None, notes
    for region in scanned_regions(content.images, content.lines, box, limits.region_coverage):
        dpi = base_dpi(region.x1 - region.x0, region.y1 - region.y0, context.limits.pixels)
        image = page.render(dpi, region)
        if may_hold_text(image):
            scan = recognised(context.ocr, image, dpi, measured.number)
            found = [line for paragraph in scan.paragraphs for line in paragraph]
            if scan.rotation == 0:
                back = leaning(scan.skew_degrees, (region.x1 - region.x0, region.y1 - region.y0))
                shown = [replace(line, bbox=transformed(line.bbox, back)) for line in found]
                lines.extend(new_lines(shown, region, content.lines))
            elif found:
                lying = f"ocr: lines of a picture that lies on its side, left out: {len(found)}"
                notes += (Note("degraded", lying, region),)
            notes += scan.notes
    sure = [(len(line.text), line.confidence or 0.0) for line in lines]
    return lines, page_confidence(sure), notes
