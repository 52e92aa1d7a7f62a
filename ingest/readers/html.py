"""HTML through lxml: the visible text as headings, paragraphs, lists, tables and code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree, html

from ingest.encoding import decode_text
from ingest.parsed import ParsedDocument
from ingest.readers.base import ReadContext
from ingest.readers.flowing import flowing_document, list_item
from ingest.readers.rows import Cell, spread, table_blocks
from ragplane.core.errors import StageError
from ragplane.core.schema import Block, Note

_INVISIBLE = frozenset(
    "script style noscript template head nav svg iframe object button select".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INLINE = frozenset(
    "a abbr b bdi bdo br cite code data dfn em font i img input ins kbd label mark q s samp small "
    "span strong sub sup time tt u var wbr".split()
)
_MAX_HIDDEN_CHARACTERS = 2000
_NUMBER = "ragplane-number"  # the attribute that a counted list item gets


@dataclass(frozen=True, slots=True)
class HtmlText:
    """What an HTML document shows, and notes of what it hides."""

    title: str
    blocks: tuple[Block, ...]
    notes: tuple[Note, ...]


def read_html(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read an HTML file as one page. Raises StageError `parse` for one without a document."""
    started = time.perf_counter()
    found = parse_html(decode_text(content))
    return flowing_document("text/html", found.blocks, context, started, found.title, found.notes)


def parse_html(text: str) -> HtmlText:
    """The visible text of an HTML document. Raises StageError `parse` for one without any."""
    # A declared encoding has done its work once the bytes are text, and lxml refuses it then.
    content = text.replace("\x00", "").encode("utf-8")
    try:
        root = html.document_fromstring(content, parser=_parser())
    except etree.ParserError as error:
        raise StageError("parse", f"not a readable HTML file ({error})") from error
    try:
        blocks = tuple(_walk(root))
        hidden = " ".join(_hidden_texts(root))[:_MAX_HIDDEN_CHARACTERS]
    except RecursionError as error:
        raise StageError("parse", "the HTML is nested too deeply") from error
    title = (root.findtext(".//title") or "").strip()
    return HtmlText(title, blocks, (Note("hidden", hidden),) if hidden else ())


def _parser() -> html.HTMLParser:
    # Without huge_tree everything nested deeper than about 255 elements is dropped in silence.
    return html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)


def _walk(element: Any, list_level: int = 0) -> Iterator[Block]:
    """Blocks below `element`; a run of inline content between block elements is a paragraph."""
    run: list[str] = [element.text or ""]
    for child in element:
        if child.tag in _INVISIBLE or _is_hidden(child):
            run.append(" " + (child.tail or ""))
        elif child.tag in _INLINE:
            run.append("\n" if child.tag == "br" else _visible(child, line_break=" "))
            run.append(child.tail or "")
        else:
            yield from _paragraph(run)
            yield from _block(child, list_level)
            run = [child.tail or ""]
    yield from _paragraph(run)


def _block(element: Any, list_level: int) -> Iterator[Block]:
    tag = element.tag
    if tag in _HEADINGS:
        text = _text(element)
        if text:
            yield Block("heading", text, level=_HEADINGS[tag])
    elif tag == "pre":
        code = _visible(element, line_break="\n").strip("\n")
        if code.strip():
            yield Block("code", code)
    elif tag == "table":
        yield from _table(element)
    elif tag == "li":
        yield from _item(element, list_level)
    else:
        yield from _walk(element, list_level)


def _item(item: Any, list_level: int) -> Iterator[Block]:
    """A list item; what follows its first paragraph is indented like it, without a marker."""
    marker = _marker(item)
    for block in _walk(item, list_level + 1):
        if block.kind == "paragraph":
            yield list_item(block.text, marker, list_level)
            marker = " " * len(marker)
        else:
            yield block


def _marker(item: Any) -> str:
    """`-`, or the number of an item of an ordered list, counted from its parent's `start`."""
    parent = item.getparent()
    if parent is None or parent.tag != "ol":
        return "-"
    before = item.getprevious()
    while before is not None and before.get(_NUMBER) is None:
        before = before.getprevious()
    number = _integer(parent, "start", 1) if before is None else int(before.get(_NUMBER)) + 1
    number = _integer(item, "value", number)
    item.set(_NUMBER, str(number))  # or counting would take quadratic time
    return f"{number}."


def _integer(element: Any, name: str, default: int) -> int:
    value = element.get(name) or ""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else default


def _paragraph(run: list[str]) -> Iterator[Block]:
    text = " ".join("".join(run).split())
    if text:
        yield Block("paragraph", text)


def _table(table: Any) -> Iterator[Block]:
    caption = table.find("caption")
    if caption is not None and _text(caption):
        yield Block("paragraph", _text(caption))
    rows = [
        [cell for cell in row if cell.tag in ("td", "th") and not _is_hidden(cell)]
        for row in _rows(table)
    ]
    texts = [[_text(cell) for cell in row] for row in rows]
    filled = [row for row, row_texts in zip(rows, texts, strict=True) if any(row_texts)]
    if len(filled) == 1 or all(len(row) == 1 for row in filled):
        for row in filled:  # a table used for layout
            for cell in row:
                yield from _walk(cell)
        return
    yield from table_blocks(spread(map(_cells, rows, texts)))


def _cells(row: list[Any], texts: list[str]) -> list[Cell]:
    return [
        Cell(text, _integer(cell, "colspan", 1), _integer(cell, "rowspan", 1))
        for cell, text in zip(row, texts, strict=True)
    ]


def _rows(table: Any) -> Iterator[Any]:
    """The shown rows of a table, without those of the tables in its cells."""
    for part in table:
        if part.tag == "tr" and not _is_hidden(part):
            yield part
        elif part.tag in ("thead", "tbody", "tfoot") and not _is_hidden(part):
            yield from _rows(part)


def _text(element: Any) -> str:
    """The visible text of an element on one line."""
    return " ".join(_visible(element, line_break=" ").split())


def _visible(element: Any, *, line_break: str) -> str:
    pieces = [element.text or ""]
    for child in element:
        if child.tag == "br":
            pieces.append(line_break)
        elif child.tag not in _INVISIBLE and not _is_hidden(child):
            spaced = "" if child.tag in _INLINE else line_break
            pieces.append(f"{spaced}{_visible(child, line_break=line_break)}{spaced}")
        pieces.append(child.tail or "")
    return "".join(pieces)


def _hidden_texts(element: Any) -> Iterator[str]:
    """The text of each hidden element, on one line; of scripts and the like nothing."""
    for child in element:
        if child.tag in _INVISIBLE:
            continue
        if _is_hidden(child):
            text = _text(child)
            if text:
                yield text
        else:
            yield from _hidden_texts(child)


def _is_hidden(element: Any) -> bool:
    style = (element.get("style") or "").replace(" ", "").lower()
    return element.get("hidden") is not None or "display:none" in style
