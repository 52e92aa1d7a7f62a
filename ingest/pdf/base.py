"""The one seam for "something that reads PDF": what an engine gives, and how to open a file.

All boxes are in points of the page as shown (after /Rotate), origin top left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from ingest.ocr import Pixels
from ingest.tables import Word
from ragplane.core.schema import BBox

PdfEngine = Literal["mupdf", "pdfium"]

UNMAPPED = "\ufffd"
"""What an engine gives for a glyph that the file maps to no character."""


@dataclass(slots=True)
class TextSpan:
    """Characters of one font, size and colour on one line.

    `painted` is False in text render mode 3 and for fully transparent text; `covered` says that
    an image (`image`) or an opaque shape (`shape`) was painted over it later. `colour` is 0xRRGGBB.
    """

    text: str
    bbox: BBox
    font: str
    size_points: float
    bold: bool
    monospaced: bool
    colour: int
    painted: bool
    covered: Literal["", "image", "shape"] = ""


@dataclass(slots=True)
class TextLine:
    """Spans on one baseline, without wide gaps.

    `direction` is where the text runs, in clockwise degrees from right (0, 90, 180, 270).
    """

    spans: list[TextSpan]
    bbox: BBox
    direction: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """A drawn path or a straight piece of one. `straight`: a rectangle or an upright line."""

    bbox: BBox
    straight: bool
    stroked: bool
    colour: int
    opaque: bool = True


@dataclass(frozen=True, slots=True)
class PageContent:
    """What is painted on a page, in the order of the file."""

    lines: list[TextLine]
    shapes: list[Shape]
    images: list[BBox]


@dataclass(frozen=True, slots=True)
class FormField:
    """A form field as a reader sees it: its value, or `[x]` and `[ ]` for boxes to tick.

    `text` is empty for a field that is not filled in, and for a password.
    """

    text: str
    bbox: BBox


@dataclass(frozen=True, slots=True)
class Annotation:
    """A comment, mark or stamp on the page (no links, no form fields)."""

    kind: str
    text: str
    bbox: BBox


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside the PDF."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TableGrid:
    """The cells of a table, row by row; None where a merged cell beside or above reaches."""

    bbox: BBox
    rows: tuple[tuple[BBox | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """What a layout model says of a page: its areas in reading order, and tables."""

    areas: tuple[BBox, ...]
    tables: tuple[TableGrid, ...]


class PdfPage(Protocol):
    """One page. Every method may raise PdfError."""

    width_points: float
    height_points: float
    rotation: int

    def content(self) -> PageContent:
        """Text, shapes and images, measured in one pass over the page."""
        ...

    def words(self) -> Sequence[Word]:
        """The words with their boxes, for the cells of tables."""
        ...

    def fields(self) -> Sequence[FormField]:
        """The form fields that take text or can be ticked; no buttons, no signatures."""
        ...

    def annotations(self) -> Sequence[Annotation]:
        """The annotations with some text."""
        ...

    def structure(self) -> Structure | None:
        """The layout model's view; None where the engine has no such model."""
        ...

    def render(self, dpi: float, clip: BBox | None = None) -> Pixels:
        """The page as shown, or the part of it inside `clip`."""
        ...


class PdfFile(Protocol):
    """An open PDF. `repaired` says that its cross references were broken and were rebuilt."""

    page_count: int
    title: str | None
    repaired: bool

    def page(self, index: int) -> PdfPage:
        """The page at `index`, counting from 0. Raises PdfError."""
        ...

    def attachments(self) -> Sequence[Attachment]:
        """The files embedded in the document."""
        ...

    def close(self) -> None:
        """Free the engine's memory."""
        ...


class PdfError(Exception):
    """The engine cannot read the file or the page; the message is the engine's own."""


class EncryptedError(PdfError):
    """The file opens with a password only, and none of those given fits."""


@contextmanager
def open_pdf(content: bytes, passwords: Sequence[str], engine: PdfEngine) -> Iterator[PdfFile]:
    """Open a PDF with the engine named. Raises EncryptedError and PdfError."""
    document = _opener(engine, content, passwords)
    try:
        yield document
    finally:
        document.close()


def _opener(engine: PdfEngine, content: bytes, passwords: Sequence[str]) -> PdfFile:
    if engine == "pdfium":
        from ingest.pdf.pdfium import PdfiumFile

        return PdfiumFile(content, passwords)
    from ingest.pdf.mupdf import MupdfFile

    return MupdfFile(content, passwords)
