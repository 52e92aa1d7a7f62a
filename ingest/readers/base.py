"""What a reader is given and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ingest.ocr import OcrEngine
from ingest.parsed import ParsedDocument, RawPage
from ingest.pdf.base import PdfEngine
from ingest.triage import Thresholds
from ingest.vlm.base import SecondReading


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Past these a document is refused (pages, unzipped bytes) or read at a lower dpi (pixels)."""

    pages: int = 20_000
    pixels: int = 12_000_000
    unzipped_bytes: int = 512 << 20
    unzip_ratio: int = 200


@dataclass(frozen=True, slots=True)
class ReadContext:
    """The name of the file (for a title, never for its type) and the tools a reader may use.

    `finished` are pages of this very file that an earlier run read: they are taken as they are.
    `on_page` hears of every other page of a paged format as soon as it is read. `vlm` reads pages
    again that the OCR could not read well.
    """

    name: str
    ocr: OcrEngine
    thresholds: Thresholds
    limits: ReadLimits = ReadLimits()
    passwords: tuple[str, ...] = ()
    finished: Mapping[int, RawPage] = field(default_factory=dict)
    on_page: Callable[[RawPage], None] = lambda _: None
    pdf_engine: PdfEngine = "mupdf"
    vlm: SecondReading | None = None


Reader = Callable[[bytes, ReadContext], ParsedDocument]

_MAX_TITLE_CHARACTERS = 200  # a title opens every citation line and every chunk's prefix


def title_or_name(title: str | None, name: str) -> str:
    """A trimmed title, or the file's name without its ending, spelt as words.

    NUL and lone surrogates, which no store takes, are left out; a file name may hold the latter.
    """
    if title and (words := _storable(title).split()):
        return " ".join(words)[:_MAX_TITLE_CHARACTERS]
    name = _storable(name)
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    return stem.replace("_", " ").replace("-", " ").strip() or name


def _storable(text: str) -> str:
    return text.encode("utf-8", errors="ignore").decode("utf-8").replace("\x00", "")
