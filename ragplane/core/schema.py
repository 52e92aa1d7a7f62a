"""The data that travels between the rooms. Frozen, typed, free of behaviour.

Offsets count characters (Python code points) in the accepted text of the document, that is, the
blocks of all its pages in reading order. Boxes are in page points, origin top left. Pages count
from 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from uuid import UUID

from ragplane.core.errors import StageError

Route = Literal["text", "layout", "ocr", "vlm", "blank"]
BlockKind = Literal["heading", "paragraph", "list_item", "table_row", "code"]
NoteKind = Literal["degraded", "hidden", "annotation", "attachment", "repaired", "truncated"]


class BBox(NamedTuple):
    """A box in page points (1/72 inch), origin top left, of the page as shown."""

    x0: float
    y0: float
    x1: float
    y1: float


class PageBox(NamedTuple):
    """Where a block stands: the page's number and the box on it."""

    page: int
    bbox: BBox


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of text with one role.

    `level` is the heading level (1 is the highest) and 0 for every other kind. `header` is the
    header row of the table that a `table_row` belongs to; the header row is its own. `confidence`
    is the OCR's, from 0 to 1, and None where the text was not recognised but read.
    """

    kind: BlockKind
    text: str
    bbox: BBox | None = None
    level: int = 0
    font_size_points: float | None = None
    bold: bool = False
    header: str | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class PageSignals:
    """What was measured on a page to choose its route. Shares run from 0 to 1.

    `invisible_characters` are in text render mode 3; `unmapped_font_share` is the share of
    characters in fonts most of whose glyphs map to nothing; `word_likeness` the share of words
    that look like words of some language; `ruled_lines` counts straight strokes.
    """

    characters: int
    words: int
    unmapped_share: float
    image_coverage: float
    drawings: int
    invisible_characters: int = 0
    unmapped_font_share: float = 0.0
    characters_under_image: int = 0
    word_likeness: float = 1.0
    columns: int = 1
    ruled_lines: int = 0
    rotation: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a page or document that is not part of its accepted text.

    `hidden` text is kept here as evidence, out of the reader model's sight.
    """

    kind: NoteKind
    text: str
    bbox: BBox | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it was read. `blocks` are in reading order; width, height and boxes, in points,
    are those of the page as shown. `rotation` is how far it was turned clockwise for reading.

    `confidence` is the OCR's mean, None where nothing was recognised; `vlm_tokens` what a vision
    model billed, or the estimate where no bill came. `error` says at which stage and why a page
    has no text; then its blocks are empty.
    """

    number: int
    width_points: float
    height_points: float
    rotation: int
    route: Route
    reason: str
    signals: PageSignals
    blocks: tuple[Block, ...]
    seconds: float
    confidence: float | None = None
    vlm_tokens: int = 0
    notes: tuple[Note, ...] = ()
    error: StageError | None = None

    @property
    def text(self) -> str:
        """The accepted text of the page: its blocks, one a line."""
        return "\n".join(block.text for block in self.blocks)


def join_pages(texts: Iterable[str]) -> str:
    """The accepted text of a document, given its pages' texts in order; empty ones are left out."""
    return "\n".join(text for text in texts if text)


@dataclass(frozen=True, slots=True)
class Document:
    """A source file as the store knows it. `generation` counts its versions from 1."""

    id: UUID
    tenant: str
    corpus: str
    source: str
    sha256: str
    mime: str
    title: str
    generation: int = 1


@dataclass(frozen=True, slots=True)
class Chunk:
    """A slice of a document's accepted text: `text == accepted[start:end]`.

    `prefix` (heading path, table header) is embedded in front of the text and counted in
    `tokens`, but is not part of it. `first_page` and `last_page` are inclusive. `boxes` are those
    of the blocks that it touches, where they are known.
    """

    id: UUID
    document_id: UUID
    ordinal: int
    text: str
    prefix: str
    heading_path: tuple[str, ...]
    first_page: int
    last_page: int
    start: int
    end: int
    tokens: int
    sha256: str
    boxes: tuple[PageBox, ...] = ()

    @property
    def embedded_text(self) -> str:
        """What the encoder sees."""
        return f"{self.prefix}\n{self.text}" if self.prefix else self.text


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found. `scores` holds each stage's score on that stage's own scale.

    `duplicates` are the sources of other documents that carry the same text.
    """

    chunk: Chunk
    document: Document
    scores: dict[str, float]
    rank: int
    score: float
    duplicates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A kept sentence of a document, `accepted[start:end]`, and how well it fits the question.

    `source` is the citation number of the document in this context.
    """

    document: Document
    source: int
    first_page: int
    last_page: int
    start: int
    end: int
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Context:
    """What a reader model gets. `text` is the prompt's context, `tokens` its measured length.

    `sources` maps the citation number used in `text` to its document; numbers count from 1.
    `scored` is False where no reranker could tell good sentences from bad; then every span scores
    0 and `degradations` says why.
    """

    text: str
    tokens: int
    spans: tuple[Span, ...]
    tokens_retrieved: int
    tokens_dropped: int
    budget: int
    sources: dict[int, Document] = field(default_factory=dict)
    scored: bool = True
    degradations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Citation:
    """A source used by an answer. `quote` is byte-identical to the document's accepted text."""

    id: int
    document: str
    title: str
    first_page: int
    last_page: int
    quote: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens spent: by the encoder for this question, and by the generator if one was asked."""

    encoder_tokens: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first, with the time of each stage in milliseconds."""

    query: str
    hits: tuple[Hit, ...]
    timings_ms: dict[str, float]
    degradations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its evidence. `text` is empty exactly when nothing relevant was found."""

    question: str
    text: str
    citations: tuple[Citation, ...]
    context: Context
    usage: Usage
    timings_ms: dict[str, float]
    degradations: tuple[str, ...] = ()
