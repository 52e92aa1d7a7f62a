"""Markdown (CommonMark with tables) through markdown-it-py."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ingest.encoding import decode_text
from ingest.parsed import ParsedDocument, flowing_page
from ingest.readers.base import ReadContext, title_or_name
from ragplane.core.schema import Block

_MAX_NESTING = 1000  # the library drops what lies deeper; its default is 20


def read_markdown(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read a Markdown file as one page. Emphasis marks and link targets are left out."""
    started = time.perf_counter()
    tokens = (
        MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
        .enable("table")
        .parse(decode_text(content))
    )
    blocks = [block for block in _blocks(tokens) if block.text.strip()]
    heading = next((block.text for block in blocks if block.kind == "heading"), None)
    page = flowing_page(blocks, time.perf_counter() - started)
    return ParsedDocument(title_or_name(heading, context.name), "text/markdown", (page,))


def _blocks(tokens: Sequence[Token]) -> Iterator[Block]:
    header: str | None = None
    cells: list[str] = []
    opened: list[Token] = []
    for token in tokens:
        if token.nesting == 1:
            opened.append(token)
            cells = [] if token.type == "tr_open" else cells
        elif token.nesting == -1:
            closed = opened.pop()
            if closed.type == "tr_open":
                row = "| " + " | ".join(cells) + " |"
                if opened[-1].type == "thead_open":
                    header = row
                yield Block("table_row", row, header=header)
        elif token.type in ("fence", "code_block"):
            yield Block("code", token.content.rstrip("\n"))
        elif token.type == "html_block":
            yield Block("paragraph", " ".join(token.content.split()))
        elif token.type == "inline":
            text = _inline_text(token)
            if opened[-1].type in ("td_open", "th_open"):
                cells.append(text.replace("|", "\\|"))
            else:
                yield _text_block(text, opened)


def _text_block(text: str, opened: Sequence[Token]) -> Block:
    kinds = [token.type for token in opened]
    if kinds[-1] == "heading_open":
        return Block("heading", text, level=int(opened[-1].tag[1:]))
    if "list_item_open" in kinds:
        return Block("list_item", f"- {text}")
    return Block("paragraph", text)


def _inline_text(token: Token) -> str:
    pieces = []
    for child in token.children or []:
        if child.type in ("softbreak", "hardbreak"):
            pieces.append(" ")
        elif child.type == "image" or child.type in (
            "text",
            "code_inline",
            "html_inline",
            "text_special",
        ):
            pieces.append(child.content)
    return " ".join("".join(pieces).split())
