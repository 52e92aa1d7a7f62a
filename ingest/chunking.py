"""Chunks: slices of the accepted text that fit the encoder, token-exact and text-conserving.

The chunks of a document, in order, hold every character of the accepted text but the white space
between them. Borders fall at headings, then blocks, then sentences, then words, then tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ingest.identity import chunk_id, text_sha256
from ragplane.core.errors import StageError
from ragplane.core.schema import Block, Chunk, Document, Page, join_pages
from ragplane.core.sentences import sentence_spans
from ragplane.core.tokens import TextTokenizer

_PREFIX_SHARE = 0.4  # a prefix may take this share of a chunk, or it is shortened


@dataclass(frozen=True, slots=True)
class _Unit:
    """A piece that is not cut further: `accepted[start:end]`."""

    start: int
    end: int
    tokens: int
    page: int
    heading_path: tuple[str, ...]
    is_heading: bool
    header: str | None
    is_header: bool


def chunk_document(
    document: Document, pages: Sequence[Page], tokenizer: TextTokenizer, limit_tokens: int
) -> list[Chunk]:
    """Cut a document into chunks of at most `limit_tokens`, specials and prefix included.

    Raises StageError `chunk` if the chunks would not conserve the text.
    """
    accepted = join_pages(page.text for page in pages)
    body_tokens = limit_tokens - tokenizer.special_tokens
    unit_tokens = max(1, body_tokens - int(body_tokens * _PREFIX_SHARE))
    units = _units(pages, accepted, tokenizer, unit_tokens)
    chunks: list[Chunk] = []
    for group in _groups(units):
        chunks.extend(_pack(document, accepted, group, tokenizer, limit_tokens, len(chunks)))
    _require_conservation(accepted, chunks)
    return chunks


def _units(
    pages: Sequence[Page], accepted: str, tokenizer: TextTokenizer, limit_tokens: int
) -> list[_Unit]:
    blocks = [(page.number, block) for page in pages for block in page.blocks]
    counts = tokenizer.count_batch([block.text for _, block in blocks])
    units: list[_Unit] = []
    path: list[tuple[int, str]] = []
    position = 0
    for (page, block), count in zip(blocks, counts, strict=True):
        if block.kind == "heading":
            path = [entry for entry in path if entry[0] < block.level]
            path.append((block.level, block.text))
        unit = _Unit(
            start=position,
            end=position + len(block.text),
            tokens=count - tokenizer.special_tokens,
            page=page,
            heading_path=tuple(text for _, text in path),
            is_heading=block.kind == "heading",
            header=block.header,
            is_header=block.header is not None and block.text == block.header,
        )
        fits = unit.tokens <= limit_tokens
        units.extend([unit] if fits else _split(unit, block, accepted, tokenizer, limit_tokens))
        position = unit.end + 1  # the line break that joins blocks
    return units


def _split(
    unit: _Unit, block: Block, accepted: str, tokenizer: TextTokenizer, limit_tokens: int
) -> list[_Unit]:
    """Cut a block that is too long at lines, sentences, words, or at last between tokens."""
    spans = _lines(block.text) if block.kind == "code" else sentence_spans(block.text)
    pieces: list[_Unit] = []
    for start, end in spans:
        text = block.text[start:end]
        tokens = tokenizer.count(text) - tokenizer.special_tokens
        piece = replace(unit, start=unit.start + start, end=unit.start + end, tokens=tokens)
        fits = tokens <= limit_tokens
        pieces.extend([piece] if fits else _windows(piece, accepted, tokenizer, limit_tokens))
    return pieces


def _windows(
    unit: _Unit, accepted: str, tokenizer: TextTokenizer, limit_tokens: int
) -> list[_Unit]:
    """Cut at token borders, after the last space of a window where there is one."""
    text = accepted[unit.start : unit.end]
    offsets = tokenizer.offsets(text)
    pieces: list[_Unit] = []
    first = 0
    start = 0
    while first < len(offsets):
        last = min(first + limit_tokens, len(offsets))
        end = len(text)
        if last < len(offsets):
            end = _window_end(text, start, offsets[last][0])
            last = next(i for i in range(first, len(offsets)) if offsets[i][1] > end)
        count = max(1, last - first)
        pieces.append(replace(unit, start=unit.start + start, end=unit.start + end, tokens=count))
        first, start = last, end
    return [_trimmed(piece, accepted) for piece in pieces]


def _window_end(text: str, start: int, border: int) -> int:
    space = text.rfind(" ", start + 1, border + 1)
    return space if space > start else border


def _trimmed(unit: _Unit, accepted: str) -> _Unit:
    text = accepted[unit.start : unit.end]
    start = unit.start + len(text) - len(text.lstrip())
    return replace(unit, start=start, end=start + len(text.strip()))


def _lines(text: str) -> list[tuple[int, int]]:
    spans, position = [], 0
    for line in text.split("\n"):
        if line.strip():
            spans.append((position, position + len(line)))
        position += len(line) + 1
    return spans


def _groups(units: Sequence[_Unit]) -> list[list[_Unit]]:
    """Sections: a heading starts one, unless only headings came before it."""
    groups: list[list[_Unit]] = []
    for unit in units:
        starts = unit.is_heading and groups and not all(u.is_heading for u in groups[-1])
        if not groups or starts:
            groups.append([unit])
        else:
            groups[-1].append(unit)
    return groups


def _pack(
    document: Document,
    accepted: str,
    units: Sequence[_Unit],
    tokenizer: TextTokenizer,
    limit_tokens: int,
    first_ordinal: int,
) -> list[Chunk]:
    """Fill chunks with the units of one section, in order."""
    chunks: list[Chunk] = []
    rest = list(units)
    while rest:
        prefix = _prefix(document, rest, tokenizer, limit_tokens)
        count = _fitting(rest, tokenizer, limit_tokens, tokenizer.count(prefix) if prefix else 0)
        if _only_headings(rest, count):
            bare = _fitting(rest, tokenizer, limit_tokens, 0)
            if not _only_headings(rest, bare):
                prefix, count = "", bare
        chunk = _chunk(document, accepted, rest[:count], prefix, tokenizer, first_ordinal)
        while chunk.tokens > limit_tokens:  # counts of parts need not add up for every tokenizer
            if count == 1 and not prefix:
                raise StageError("chunk", f"a single unit takes {chunk.tokens} tokens")
            count, prefix = (count - 1, prefix) if count > 1 else (1, "")
            chunk = _chunk(document, accepted, rest[:count], prefix, tokenizer, first_ordinal)
        chunks.append(chunk)
        first_ordinal += 1
        rest = rest[count:]
    return chunks


def _fitting(
    units: Sequence[_Unit], tokenizer: TextTokenizer, limit_tokens: int, prefix_tokens: int
) -> int:
    """How many units fit one chunk together, at least one, all under one table header."""
    total = max(prefix_tokens, tokenizer.special_tokens)
    count = 0
    for unit in units:
        total += unit.tokens
        if count and (total > limit_tokens or _changes_table(units[count - 1], unit)):
            break
        count += 1
    if count < len(units) and count > 1 and units[count - 1].is_heading:
        count -= 1  # a heading goes with what it heads
    return count


def _only_headings(units: Sequence[_Unit], count: int) -> bool:
    """Whether the first units are headings parted from what they head."""
    return count < len(units) and all(unit.is_heading for unit in units[:count])


def _changes_table(before: _Unit, unit: _Unit) -> bool:
    """Whether a table begins or ends between the two: a chunk has one header or none.

    A table that begins right below a heading stays with it.
    """
    return unit.header != before.header and not (before.is_heading and unit.is_header)


def _prefix(
    document: Document, units: Sequence[_Unit], tokenizer: TextTokenizer, limit_tokens: int
) -> str:
    """Title, the headings above the chunk that it does not hold itself, and its table header."""
    first = units[0]
    header = next((unit.header for unit in units if not unit.is_heading), None)
    above = first.heading_path[:-1] if first.is_heading else first.heading_path
    titles = list(dict.fromkeys(part for part in (document.title, *above) if part))
    endings = [f"\n{header}", ""] if header else [""]
    for ending in endings:  # rather no header than no title: the text holds it once anyway
        for path in _shortened(titles):
            prefix = " > ".join(path) + ending
            if tokenizer.count(prefix) <= limit_tokens * _PREFIX_SHARE:
                return prefix
    return ""


def _shortened(titles: Sequence[str]) -> Iterator[Sequence[str]]:
    """All titles, then fewer from the second on, at last the innermost alone."""
    for count in range(len(titles), 0, -1):
        yield [titles[0], *titles[len(titles) - count + 1 :]]
    if len(titles) > 1:
        yield titles[-1:]


def _chunk(
    document: Document,
    accepted: str,
    units: Sequence[_Unit],
    prefix: str,
    tokenizer: TextTokenizer,
    ordinal: int,
) -> Chunk:
    start, end = units[0].start, units[-1].end
    text = accepted[start:end]
    sha256 = text_sha256(f"{prefix}\n{text}")
    return Chunk(
        id=chunk_id(document.tenant, document.corpus, document.id, ordinal, sha256),
        document_id=document.id,
        ordinal=ordinal,
        text=text,
        prefix=prefix,
        heading_path=units[0].heading_path,
        first_page=units[0].page,
        last_page=units[-1].page,
        start=start,
        end=end,
        tokens=tokenizer.count(f"{prefix}\n{text}" if prefix else text),
        sha256=sha256,
    )


def _require_conservation(accepted: str, chunks: Sequence[Chunk]) -> None:
    position = 0
    for chunk in chunks:
        if accepted[position : chunk.start].strip() or chunk.start < position:
            raise StageError("chunk", f"text between {position} and {chunk.start} was lost")
        position = chunk.end
    if accepted[position:].strip():
        raise StageError("chunk", f"text after {position} was lost")
