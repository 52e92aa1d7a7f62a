"""From raw lines to blocks: furniture left out, roles told, lines joined, tables put in place.

Works on whole documents, because what is body text, furniture or an attested word shows only there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ingest.bidi import in_logical_order
from ingest.characters import resolved
from ingest.code import code_text, with_code_joined
from ingest.furniture import furniture
from ingest.headings import Fonts, document_fonts
from ingest.joining import attested_words, join_lines
from ingest.parsed import Line, RawPage
from ingest.placing import OpenTable, insert_rows, table_rows
from ingest.rows import bounds
from ingest.shown import as_shown, turned_size
from ragplane.core.schema import Block, Page

_LIST_ITEM = re.compile(r"(?:[•◦▪‣·○●■□–*-]|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)])\s+(?=\S)")
_ORDERED = re.compile(r"\(?(?:\d|[a-z])")
_SENTENCE_END = re.compile(r"[.!?:;…。！？]\W*$")
_LEVEL_POINTS = 6.0  # list items further apart than this are of two levels
_INDENT = "  "  # a level of a list, as in Markdown


@dataclass(frozen=True, slots=True)
class _Facts:
    """What only the whole document tells."""

    fonts: Fonts
    words: frozenset[str]


def blocks_of_pages(raw_pages: Sequence[RawPage]) -> list[Page]:
    """Pages with their blocks in reading order, furniture left out, boxes as the page is shown.

    A page that came with its blocks, or with an error, passes as it is.
    """
    cleaned = _cleaned(raw_pages)
    fonts = document_fonts(cleaned)
    left_out = furniture(cleaned, fonts)
    facts = _Facts(fonts, attested_words(line.text for line in _lines(cleaned)))
    pages: list[Page] = []
    open_table: OpenTable | None = None
    for index, raw in enumerate(cleaned):
        if raw.blocks or raw.error:
            pages.append(_page(raw, raw.blocks if raw.error is None else ()))
            open_table = None
            continue
        paragraphs = [
            [line for line in paragraph if (index, id(line)) not in left_out]
            for paragraph in raw.paragraphs
        ]
        blocks = _blocks([lines for lines in paragraphs if lines], raw, facts)
        for table in sorted(raw.tables, key=lambda table: table.bbox.y0):
            rows, open_table = table_rows(table, blocks, open_table)
            blocks = insert_rows(blocks, rows, table.bbox)
        if not blocks or blocks[-1].kind != "table_row":
            open_table = None  # a table that ended on its page
        pages.append(_page(raw, blocks))
    return pages


def _page(raw: RawPage, blocks: Sequence[Block]) -> Page:
    width, height = turned_size(raw.width_points, raw.height_points, raw.turn)
    return Page(
        number=raw.number,
        width_points=width,
        height_points=height,
        rotation=raw.rotation,
        route=raw.route,
        reason=raw.reason,
        signals=raw.signals,
        blocks=as_shown([block for block in blocks if block.text.strip()], raw),
        seconds=raw.seconds,
        confidence=raw.confidence,
        vlm_tokens=raw.vlm_tokens,
        notes=raw.notes,
        error=raw.error,
    )


def _lines(raw_pages: Sequence[RawPage]) -> Iterator[Line]:
    for raw in raw_pages:
        for paragraph in raw.paragraphs:
            yield from paragraph


def _cleaned(raw_pages: Sequence[RawPage]) -> list[RawPage]:
    """The pages with every text in logical order, its ligatures resolved."""
    texts = [line.text for line in _lines(raw_pages)]
    texts += [
        cell for raw in raw_pages for table in raw.tables for row in table.rows for cell in row
    ]
    if all(text.isascii() and "\x00" not in text for text in texts):
        return list(raw_pages)
    clean = iter([resolved(text) for text in in_logical_order(texts)])
    paragraphs = [
        tuple(tuple(_with_text(line, next(clean)) for line in one) for one in raw.paragraphs)
        for raw in raw_pages
    ]
    tables = [
        tuple(
            replace(table, rows=tuple(tuple(next(clean) for _ in row) for row in table.rows))
            for table in raw.tables
        )
        for raw in raw_pages
    ]
    return [
        replace(raw, paragraphs=own, tables=found)
        for raw, own, found in zip(raw_pages, paragraphs, tables, strict=True)
    ]


def _with_text(line: Line, text: str) -> Line:
    return line if text == line.text else replace(line, text=text)


def _blocks(paragraphs: Sequence[Sequence[Line]], raw: RawPage, facts: _Facts) -> list[Block]:
    blocks: list[Block] = []
    levels: list[float] = []  # where the marks of the open list levels stand
    for lines in with_code_joined(paragraphs):
        for item in _items(lines):
            block = _block(item, raw, facts)
            if block.kind == "list_item":
                block = replace(block, text=_INDENT * _depth(item[0].bbox.x0, levels) + block.text)
            elif item[0].bbox.x0 < min(levels, default=0.0) + _LEVEL_POINTS:
                levels = []  # running text ends a list, unless it is indented as part of an item
            blocks.append(block)
    return blocks


def _items(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """A paragraph cut before each list mark that stands in it."""
    if lines[0].monospaced:
        yield lines
        return
    start = 0
    for i in range(1, len(lines)):
        if _starts_item(lines[i], lines[i - 1], in_list=bool(_LIST_ITEM.match(lines[start].text))):
            yield lines[start:i]
            start = i
    yield lines[start:]


def _starts_item(line: Line, above: Line, *, in_list: bool) -> bool:
    """Whether a line is a list item and not a wrapped one that begins with a number or a dash."""
    text = line.text.lstrip()
    if not _LIST_ITEM.match(text):
        return False
    is_bullet = text[0] not in "-–" and not _ORDERED.match(text)
    return is_bullet or in_list or _SENTENCE_END.search(above.text) is not None


def _depth(x0: float, levels: list[float]) -> int:
    """The level of a list item by where its mark stands; `levels` is kept up to date."""
    while levels and x0 < levels[-1] - _LEVEL_POINTS:
        levels.pop()
    if not levels or x0 > levels[-1] + _LEVEL_POINTS:
        levels.append(x0)
    return len(levels) - 1


def _block(lines: Sequence[Line], raw: RawPage, facts: _Facts) -> Block:
    code = all(line.monospaced for line in lines)
    text = code_text(lines) if code else join_lines(lines, facts.words)
    level = 0 if code else facts.fonts.level(lines, text, raw.route)
    confidences = [line.confidence for line in lines if line.confidence is not None]
    is_item = _LIST_ITEM.match(text) is not None
    return Block(
        kind="heading" if level else "code" if code else "list_item" if is_item else "paragraph",
        text=text,
        bbox=bounds(lines),
        level=level,
        font_size_points=round(max(line.font_size_points for line in lines), 1),
        bold=all(line.bold for line in lines),
        confidence=min(confidences) if confidences else None,
    )
