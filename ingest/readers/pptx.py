"""PPTX through python-pptx: each slide is a page with title, text, tables, charts and notes."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pptx
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.exc import PythonPptxError
from pptx.shapes.group import GroupShape

from ingest.parsed import ParsedDocument, flowing_page
from ingest.readers.base import ReadContext, title_or_name
from ingest.readers.charts import chart_blocks
from ingest.readers.flowing import list_item, storable_blocks
from ingest.readers.rows import table_blocks
from ingest.readers.zipped import malformed_as, open_zip
from ragplane.core.errors import StageError
from ragplane.core.schema import BBox, Block, Note, Page

_MIME = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_EMU_PER_POINT = 12700
_FURNITURE = (PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.SLIDE_NUMBER)
_BULLETED = (PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT)
_BULLETS = {"buNone": False, "buChar": True, "buAutoNum": True, "buBlip": True}


def read_pptx(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read each slide as the page of its number; a hidden slide's text is only noted.

    Raises StageError `parse` for a broken or inflated file, or one of too many slides.
    """
    with malformed_as("PPTX", PythonPptxError):
        open_zip(content, "PPTX", context.limits).close()
        presentation = pptx.Presentation(io.BytesIO(content))
        if len(presentation.slides) > context.limits.pages:
            raise StageError("parse", f"the PPTX has {len(presentation.slides):,} slides, refused")
        size = (_points(presentation.slide_width), _points(presentation.slide_height))
        slides = enumerate(presentation.slides, start=1)
        pages = tuple(_page(slide, number, size) for number, slide in slides)
        title = presentation.core_properties.title.strip()
    headings = (block.text for page in pages for block in page.blocks if block.kind == "heading")
    return ParsedDocument(title_or_name(title or next(headings, None), context.name), _MIME, pages)


def _page(slide: Any, number: int, size: tuple[float, float]) -> Page:
    started = time.perf_counter()
    blocks = storable_blocks(_slide_blocks(slide))
    notes: tuple[Note, ...] = ()
    if slide.element.get("show") in ("0", "false") and blocks:
        notes = (Note("hidden", "\n".join(block.text for block in blocks)),)
        blocks = []
    page = flowing_page(blocks, time.perf_counter() - started)
    reason = page.reason if blocks else "the slide is hidden" if notes else "the slide has no text"
    return replace(
        page, number=number, width_points=size[0], height_points=size[1], notes=notes, reason=reason
    )


def _slide_blocks(slide: Any) -> Iterator[Block]:
    title = slide.shapes.title
    if title is not None:
        text = _line(title.text_frame.text)
        yield Block("heading", text, bbox=_bbox(title), level=1)
    others = (shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id)
    for shape in others:
        box = _bbox(shape)
        yield from (replace(block, bbox=box) for block in _shape_blocks(shape))
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if notes is not None and notes.text.strip():
        lines = "\n".join(_line(paragraph.text) for paragraph in notes.paragraphs)
        yield Block("paragraph", f"Notes: {lines.strip()}")


def _shape_blocks(shape: Any) -> Iterator[Block]:
    kind = shape.placeholder_format.type if shape.is_placeholder else None
    if isinstance(shape, GroupShape):
        for part in shape.shapes:
            yield from _shape_blocks(part)
    elif shape.has_table:
        yield from table_blocks(_rows(shape.table))
    elif shape.has_chart:
        yield from chart_blocks(shape.chart.part.blob)
    elif shape.has_text_frame and kind not in _FURNITURE:
        yield from _text_blocks(shape.text_frame.paragraphs, is_bulleted=kind in _BULLETED)


def _text_blocks(paragraphs: Iterable[Any], *, is_bulleted: bool) -> Iterator[Block]:
    for paragraph in paragraphs:
        text = _line(paragraph.text)
        if text and _has_bullet(paragraph, is_bulleted):
            yield list_item(text, level=paragraph.level)
        elif text:
            yield Block("paragraph", text)


def _has_bullet(paragraph: Any, by_default: bool) -> bool:
    properties = paragraph._p.pPr
    for child in properties if properties is not None else ():
        name = child.tag.rpartition("}")[2]
        if name in _BULLETS:
            return _BULLETS[name]
    return by_default


def _rows(table: Any) -> Iterator[list[str]]:
    """Cell texts; what a merged cell covers is empty."""
    for row in table.rows:
        yield ["" if cell.is_spanned else cell.text_frame.text for cell in row.cells]


def _line(text: str) -> str:
    return " ".join(text.split())


def _bbox(shape: Any) -> BBox | None:
    """The box of a shape on its slide; None where it takes it from the layout and has none."""
    sides = (shape.left, shape.top, shape.width, shape.height)
    if any(side is None for side in sides):
        return None
    left, top, width, height = map(_points, sides)
    return BBox(left, top, left + width, top + height)


def _points(emu: int | None) -> float:
    return (emu or 0) / _EMU_PER_POINT
