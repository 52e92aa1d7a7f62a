"""What goes into and comes out of reading, and the raw form of PDF and OCR pages before layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from ragplane.core.errors import StageError
from ragplane.core.schema import BBox, Block, Chunk, Document, Note, Page, PageSignals, Route


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document as read: its title, MIME type and pages in order; notes on the whole of it."""

    title: str
    mime: str
    pages: tuple[Page, ...]
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class ParseRequest:
    """A file to parse and where it belongs. `generation` is the one it will have.

    `vlm_tokens_spent` is what the tenant's other documents have cost.
    """

    path: Path
    source: str
    tenant: str
    corpus: str
    document_id: UUID
    generation: int
    vlm_tokens_spent: int = 0


@dataclass(frozen=True, slots=True)
class ParseResult:
    """A parsed file. `document.sha256` is of the very bytes that were parsed.

    Notes on the whole of it stand at its first page.
    """

    document: Document
    pages: tuple[Page, ...]
    chunks: tuple[Chunk, ...]


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
    """A page before layout. `paragraphs` are groups of lines in reading order.

    It is what a checkpoint of a page holds: a resumed run takes it from there. `blocks` are those
    of a page that came with its structure (a vision model's Markdown), and stand for `paragraphs`.
    Size and boxes are those of the page laid for reading: turned clockwise by `turn` degrees (0,
    90, 180 or 270), then anticlockwise by `skew_degrees` about its middle. `rotation`,
    `confidence`, `vlm_tokens`, `notes` and `error` as in `Page`.
    """

    number: int
    width_points: float
    height_points: float
    rotation: int
    route: Route
    reason: str
    signals: PageSignals
    seconds: float
    paragraphs: tuple[tuple[Line, ...], ...] = ()
    blocks: tuple[Block, ...] = ()
    tables: tuple[Table, ...] = ()
    turn: int = 0
    skew_degrees: float = 0.0
    confidence: float | None = None
    vlm_tokens: int = 0
    notes: tuple[Note, ...] = ()
    error: StageError | None = None


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
