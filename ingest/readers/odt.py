"""ODT (OpenDocument 1.3 text) by lxml over its content.xml, in body order.

Page headers and footers, comments and tracked deletions are left out; a footnote stands after the
paragraph that refers to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from ingest.parsed import ParsedDocument
from ingest.readers.base import ReadContext
from ingest.readers.flowing import flowing_document, list_item
from ingest.readers.rows import Cell, spread, table_blocks
from ingest.readers.zipped import attribute, local_name, malformed_as, open_zip, xml_root
from ragplane.core.errors import StageError
from ragplane.core.schema import Block

_MIME = "application/vnd.oasis.opendocument.text"
_LEFT_OUT = frozenset(
    "annotation annotation-end tracked-changes sequence-decls variable-decls user-field-decls "
    "table-of-content-source forms title desc scripts".split()
)
_SPACES = frozenset("tab line-break".split())
_ROW_GROUPS = frozenset("table-header-rows table-rows table-row-group".split())
_MAX_REPEATS = 64


def read_odt(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read an ODT as one page. Raises StageError `parse` for a broken or encrypted file."""
    started = time.perf_counter()
    with malformed_as("ODT"), open_zip(content, "ODT", context.limits) as archive:
        names = set(archive.namelist())
        manifest = "META-INF/manifest.xml"
        if manifest in names and b":encryption-data" in archive.read(manifest):
            raise StageError("parse", "encrypted ODT")
        root = xml_root(archive.read("content.xml"))
        title = _title(archive.read("meta.xml")) if "meta.xml" in names else ""
        body = next((part for part in root.iter() if local_name(part) == "text"), None)
        if body is None:
            raise ValueError("the content has no body of text")
        blocks = list(_walk(body))
    return flowing_document(_MIME, blocks, context, started, title)


def _title(meta: bytes) -> str:
    parts = xml_root(meta).iter("{http://purl.org/dc/elements/1.1/}title")
    return next((part.text or "" for part in parts), "")


def _walk(container: Iterable[Any], list_level: int = 0) -> Iterator[Block]:
    for part in container:
        name = local_name(part)
        if name in ("h", "p"):
            yield from _paragraph(part, name)
        elif name == "list":
            yield from _list(part, list_level)
        elif name == "table":
            yield from _table(part)
        elif name not in _LEFT_OUT:
            yield from _walk(part, list_level)


def _paragraph(paragraph: Any, name: str) -> Iterator[Block]:
    pieces: list[str] = []
    apart: list[Any] = []
    _gather(paragraph, pieces, apart)
    text = " ".join("".join(pieces).split())
    if text and name == "h":
        yield Block("heading", text, level=int(attribute(paragraph, "outline-level") or 1))
    elif text:
        yield Block("paragraph", text)
    for part in apart:
        if local_name(part) == "note":
            yield from _note(part)
        else:
            yield from _walk(part)


def _gather(element: Any, pieces: list[str], apart: list[Any]) -> None:
    """Put the text of a paragraph into `pieces`, its notes and text boxes into `apart`."""
    pieces.append(element.text or "")
    for part in element:
        name = local_name(part)
        if name == "s" or name in _SPACES:
            pieces.append(" ")
        elif name == "note":
            pieces.append(f"[{_citation(part)}]")
            apart.append(part)
        elif name == "text-box":
            apart.append(part)
        elif name not in _LEFT_OUT:
            _gather(part, pieces, apart)
        pieces.append(part.tail or "")


def _note(note: Any) -> Iterator[Block]:
    body = next((part for part in note if local_name(part) == "note-body"), ())
    text = " ".join(block.text for block in _walk(body))
    yield Block("paragraph", f"[{_citation(note)}] {text}")


def _citation(note: Any) -> str:
    mark = next((part for part in note if local_name(part) == "note-citation"), None)
    return "".join(mark.itertext()) if mark is not None else ""


def _list(element: Any, level: int) -> Iterator[Block]:
    for item in element:
        for block in _walk(item, level + 1):
            is_text = block.kind == "paragraph"
            yield list_item(block.text, level=level) if is_text else block


def _table(table: Any) -> Iterator[Block]:
    rows = list(_rows(table))
    if [len(row) for row in rows] == [1]:  # a frame around text
        yield from _walk(rows[0][0])
        return
    inner: list[Any] = []
    yield from table_blocks(spread([_cell(cell, inner) for cell in row] for row in rows))
    for nested in inner:
        yield from _table(nested)


def _rows(table: Any) -> Iterator[list[Any]]:
    """The cells of each row; those that a merged cell covers are left out, repeated ones given."""
    for part in table:
        name = local_name(part)
        if name == "table-row":
            yield [
                cell
                for cell in part
                if local_name(cell) == "table-cell"
                for _ in range(_repeats(cell, "number-columns-repeated"))
            ]
        elif name in _ROW_GROUPS:
            yield from _rows(part)


def _cell(cell: Any, inner: list[Any]) -> Cell:
    tables = [part for part in cell if local_name(part) == "table"]
    inner.extend(tables)
    content = (part for part in cell if local_name(part) != "table")
    text = " ".join(block.text.strip() for block in _walk(content))
    columns = int(attribute(cell, "number-columns-spanned") or 1)
    return Cell(text, columns, int(attribute(cell, "number-rows-spanned") or 1))


def _repeats(cell: Any, name: str) -> int:
    return min(int(attribute(cell, name) or 1), _MAX_REPEATS)
