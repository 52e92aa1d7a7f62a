"""DOCX through python-docx: headings, paragraphs, lists and tables in body order."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import docx
from docx.opc.exceptions import PackageNotFoundError
from docx.table import Table
from docx.text.paragraph import Paragraph

from ingest.parsed import ParsedDocument, flowing_page
from ingest.readers.base import ReadContext, title_or_name
from ragplane.core.errors import StageError
from ragplane.core.schema import Block

_MIME = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_MAX_UNZIPPED_BYTES = 512 << 20
_MAX_UNZIP_RATIO = 200
_MALFORMED = (AttributeError, KeyError, ValueError, SyntaxError)  # the library's, on bad XML


def read_docx(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read a DOCX as one page. Raises StageError `parse` for a broken or inflated file."""
    started = time.perf_counter()
    _refuse_bomb(content)
    try:
        document = docx.Document(io.BytesIO(content))
        blocks = list(_blocks(document))
        title = document.core_properties.title
    except (PackageNotFoundError, zipfile.BadZipFile, *_MALFORMED) as error:
        raise StageError("parse", f"not a readable DOCX ({error})") from error
    heading = next((block.text for block in blocks if block.kind == "heading"), None)
    title = title_or_name(title.strip() or heading, context.name)
    return ParsedDocument(title, _MIME, (flowing_page(blocks, time.perf_counter() - started),))


def _refuse_bomb(content: bytes) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unzipped = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile as error:
        raise StageError("parse", f"not a readable DOCX ({error})") from error
    if unzipped > _MAX_UNZIPPED_BYTES or unzipped > _MAX_UNZIP_RATIO * max(len(content), 1 << 16):
        raise StageError("parse", f"the DOCX unzips to {unzipped:,} bytes, which is refused")


def _blocks(document: Any) -> Iterator[Block]:
    for part in document.iter_inner_content():
        if isinstance(part, Table):
            yield from _table(part)
        elif isinstance(part, Paragraph) and part.text.strip():
            yield _paragraph(part)


def _paragraph(paragraph: Paragraph) -> Block:
    text = " ".join(paragraph.text.split())
    style = (paragraph.style.name if paragraph.style else None) or ""
    if style == "Title":
        return Block("heading", text, level=1)
    if style.startswith("Heading ") and style[8:].isdigit():
        return Block("heading", text, level=int(style[8:]))
    properties = paragraph._p.pPr
    numbered = properties is not None and properties.numPr is not None
    if numbered or style.startswith("List"):
        return Block("list_item", f"- {text}")
    return Block("paragraph", text)


def _table(table: Table) -> Iterator[Block]:
    rows = [_cells(row) for row in table.rows]
    rows = [row for row in rows if any(row)]
    header = _markdown(rows[0]) if rows else None
    for row in rows:
        yield Block("table_row", _markdown(row), header=header)


def _cells(row: Any) -> list[str]:
    """Cell texts; a merged cell is given once, not once for each column it spans."""
    texts: list[str] = []
    seen: set[int] = set()
    for cell in row.cells:
        if id(cell._tc) not in seen:
            seen.add(id(cell._tc))
            texts.append(" ".join(cell.text.split()).replace("|", "\\|"))
    return texts


def _markdown(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
