"""Markdown (CommonMark with tables) through markdown-it-py."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ingest.encoding import decode_text
from ingest.parsed import ParsedDocument
from ingest.readers.base import ReadContext
from ingest.readers.flowing import flowing_document, list_item
from ingest.readers.rows import table_blocks
from ingest.readers.text import text_blocks
from ragplane.core.schema import Block, Note

_MAX_NESTING = 1000  # the library drops what lies deeper; its default is 20
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n((?:[^\n]*\n){1,200}?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FRONT_TITLE = re.compile(r"^title:[ \t]*([\"']?)(.+?)\1[ \t]*$", re.MULTILINE)
_CELLS = ("td_open", "th_open")
_TEXTS = ("text", "code_inline", "html_inline", "text_special", "image")


def read_markdown(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read a Markdown file as one page. Emphasis marks and link targets are left out.

    Front matter is a paragraph, and its `title` the document's. A file nested more deeply than
    the library takes is read as plain text, with a note.
    """
    started = time.perf_counter()
    text = decode_text(content).replace("\r\n", "\n")
    front = _FRONT_MATTER.match(text)
    blocks: list[Block] = []
    title = None
    if front:
        blocks.append(Block("paragraph", front[1].strip()))
        text = text[front.end() :]
        title = found[2] if (found := _FRONT_TITLE.search(front[1])) else None
    notes: list[Note] = []
    try:
        blocks.extend(parse_markdown(text))
    except RecursionError:
        blocks.extend(text_blocks(text))
        notes.append(Note("degraded", "nested too deeply for Markdown, read as plain text"))
    return flowing_document("text/markdown", blocks, context, started, title, notes)


def parse_markdown(text: str) -> list[Block]:
    """The blocks of Markdown text, in order. Raises RecursionError for deep nesting."""
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable("table")
    return list(_blocks(parser.parse(text)))


def _blocks(tokens: Sequence[Token]) -> Iterator[Block]:
    rows: list[list[str]] = []
    opened: list[Token] = []
    for token in tokens:
        if token.nesting == 1:
            opened.append(token)
            if token.type == "tr_open":
                rows.append([])
        elif token.nesting == -1:
            opened.pop()
            if token.type == "table_close":
                yield from table_blocks(rows)
                rows = []
        elif token.type in ("fence", "code_block"):
            yield Block("code", token.content.rstrip("\n"))
        elif token.type == "html_block":
            yield Block("paragraph", " ".join(token.content.split()))
        elif token.type == "inline":
            text = _inline_text(token)
            if opened[-1].type in _CELLS:
                rows[-1].append(text)
            else:
                yield _text_block(text, opened)


def _text_block(text: str, opened: Sequence[Token]) -> Block:
    if opened[-1].type == "heading_open":
        return Block("heading", text, level=int(opened[-1].tag[1:]))
    items = [index for index, token in enumerate(opened) if token.type == "list_item_open"]
    if not items:
        return Block("paragraph", text)
    item = opened[items[-1]]
    marker = f"{item.info}." if item.info else "-"
    if item.meta.get("has_text"):  # a further paragraph of the same item
        marker = " " * len(marker)
    item.meta["has_text"] = True
    return list_item(text, marker, len(items) - 1)


def _inline_text(token: Token) -> str:
    pieces = []
    for child in token.children or []:
        if child.type in ("softbreak", "hardbreak"):
            pieces.append(" ")
        elif child.type in _TEXTS:
            pieces.append(child.content)
    return " ".join("".join(pieces).split())
