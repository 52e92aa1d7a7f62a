"""What a reader returns, and the raw form in which PDF and OCR pages meet before layout."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragplane.core.schema import BBox, Block, Page, PageSignals, Route


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document as read: its title, MIME type and pages in order."""

    title: str
    mime: str
    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text on a page, with the facts that layout decides by."""

    text: str
    bbox: BBox
    font_size_points: float
    bold: bool = False
    monospaced: bool = False
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table on a page: its cells row by row, all rows of one length."""

    bbox: BBox
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class RawPage:
    """A page before layout. `paragraphs` are groups of lines in reading order."""

    number: int
    width_points: float
    height_points: float
    rotation: int
    route: Route
    reason: str
    signals: PageSignals
    seconds: float
    paragraphs: tuple[tuple[Line, ...], ...] = ()
    tables: tuple[Table, ...] = field(default=())


def flowing_page(blocks: list[Block], seconds: float) -> Page:
    """The single page of a format that has no pages (DOCX, HTML, Markdown, text)."""
    text = " ".join(block.text for block in blocks)
    signals = PageSignals(
        characters=len(text),
        words=len(text.split()),
        unmapped_share=0.0,
        image_coverage=0.0,
        drawings=0,
    )
    return Page(
        number=1,
        width_points=0.0,
        height_points=0.0,
        rotation=0,
        route="text" if blocks else "blank",
        reason="the format carries its text" if blocks else "the file holds no text",
        signals=signals,
        blocks=tuple(blocks),
        seconds=seconds,
    )
