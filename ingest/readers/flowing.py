"""What the readers of formats without fixed pages share: storable blocks, a title, one page."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from ingest.parsed import ParsedDocument, flowing_page
from ingest.readers.base import ReadContext, title_or_name
from ragplane.core.schema import Block, Note

_LIST_INDENT = "  "
_MAX_LIST_LEVEL = 8  # a file may claim any


def flowing_document(
    mime: str,
    blocks: Iterable[Block],
    context: ReadContext,
    started: float,
    title: str | None = None,
    notes: Iterable[Note] = (),
) -> ParsedDocument:
    """A document of one page. Without a title it is called by its first heading, or by its file.

    `started` is the `time.perf_counter()` at which reading began.
    """
    kept = storable_blocks(blocks)
    heading = next((block.text for block in kept if block.kind == "heading"), None)
    name = title_or_name((title or "").strip() or heading, context.name)
    page = flowing_page(kept, time.perf_counter() - started)
    return ParsedDocument(name, mime, (page,), tuple(notes))


def storable_blocks(blocks: Iterable[Block]) -> list[Block]:
    """The blocks that hold text, without the characters that no store takes."""
    return [block for block in map(_storable_block, blocks) if block.text.strip()]


def storable(text: str) -> str:
    """The text without NUL and lone surrogates."""
    if text.isascii():
        return text.replace("\x00", "")
    return text.encode("utf-8", errors="ignore").decode("utf-8").replace("\x00", "")


def list_item(text: str, marker: str = "-", level: int = 0) -> Block:
    """A list item; `level` counts the lists around it beyond the first."""
    return Block("list_item", f"{_LIST_INDENT * min(level, _MAX_LIST_LEVEL)}{marker} {text}")


def _storable_block(block: Block) -> Block:
    text = storable(block.text)
    header = block.header and storable(block.header)
    if text == block.text and header == block.header:
        return block
    return replace(block, text=text, header=header)
