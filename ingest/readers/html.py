"""HTML through lxml: the visible text as headings, paragraphs, lists, tables and code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from lxml import etree, html

from ingest.encoding import decode_text
from ingest.parsed import ParsedDocument, flowing_page
from ingest.readers.base import ReadContext, title_or_name
from ragplane.core.errors import StageError
from ragplane.core.schema import Block

_INVISIBLE = frozenset(
    "script style noscript template head nav svg iframe object button select".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INLINE = frozenset(
    "a abbr b bdi bdo br cite code data dfn em font i img input ins kbd label mark q s samp small "
    "span strong sub sup time tt u var wbr".split()
)


def read_html(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read an HTML file as one page. Raises StageError `parse` for one without a document."""
    started = time.perf_counter()
    # A declared encoding has done its work once the bytes are text, and lxml refuses it then.
    text = decode_text(content).replace("\x00", "")
    try:
        root = html.document_fromstring(text.encode("utf-8"), parser=_parser())
    except etree.ParserError as error:
        raise StageError("parse", f"not a readable HTML file ({error})") from error
    try:
        blocks = list(_walk(root))
    except RecursionError as error:
        raise StageError("parse", "the HTML is nested too deeply") from error
    heading = next((block.text for block in blocks if block.kind == "heading"), None)
    title = title_or_name((root.findtext(".//title") or "").strip() or heading, context.name)
    return ParsedDocument(
        title, "text/html", (flowing_page(blocks, time.perf_counter() - started),)
    )


def _parser() -> html.HTMLParser:
    # Without huge_tree everything nested deeper than about 255 elements is dropped in silence.
    return html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)


def _walk(element: Any) -> Iterator[Block]:
    """Blocks below `element`; a run of inline content between block elements is a paragraph."""
    run: list[str] = [element.text or ""]
    for child in element:
        if child.tag in _INVISIBLE or _is_hidden(child):
            run.append(" " + (child.tail or ""))
        elif child.tag in _INLINE:
            run.extend(["\n" if child.tag == "br" else _text(child), child.tail or ""])
        else:
            yield from _paragraph(run)
            yield from _block(child)
            run = [child.tail or ""]
    yield from _paragraph(run)


def _block(element: Any) -> Iterator[Block]:
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
        for block in _walk(element):
            is_text = block.kind == "paragraph"
            yield Block("list_item", f"- {block.text}") if is_text else block
    else:
        yield from _walk(element)


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
    rows = [row for row in rows if any(map(_text, row))]
    if len(rows) == 1 or all(len(row) == 1 for row in rows):
        for row in rows:  # a table used for layout
            for cell in row:
                yield from _walk(cell)
        return
    for row in rows:
        yield Block("table_row", _markdown(row), header=_markdown(rows[0]))


def _rows(table: Any) -> Iterator[Any]:
    """The shown rows of a table, without those of the tables in its cells."""
    for part in table:
        if part.tag == "tr" and not _is_hidden(part):
            yield part
        elif part.tag in ("thead", "tbody", "tfoot") and not _is_hidden(part):
            yield from _rows(part)


def _markdown(row: list[Any]) -> str:
    return "| " + " | ".join(_text(cell).replace("|", "\\|") for cell in row) + " |"


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


def _is_hidden(element: Any) -> bool:
    style = (element.get("style") or "").replace(" ", "").lower()
    return element.get("hidden") is not None or "display:none" in style
