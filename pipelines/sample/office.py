"""Write blocks as a Word document that comes out the same every time."""

import datetime
import io
import zipfile

import docx
from docx.document import Document

from pipelines.sample.markup import Block

_STAMP = datetime.datetime(2031, 6, 1, 9, tzinfo=datetime.UTC)


def docx_bytes(blocks: list[Block], title: str) -> bytes:
    """Set the blocks with the default template's styles."""
    document = docx.Document()
    for block in blocks:
        _add(document, block)
    properties = document.core_properties
    properties.title = title
    properties.author = properties.comments = ""
    properties.created = properties.modified = _STAMP
    buffer = io.BytesIO()
    document.save(buffer)
    return _repacked(buffer)


def _add(document: Document, block: Block) -> None:
    match block.kind:
        case "heading":
            document.add_heading(block.text, level=block.level - 1)
        case "item":
            style = "List Bullet" if block.label == "-" else "List Number"
            document.add_paragraph(block.text, style=style)
        case "table":
            _table(document, block.rows)
        case "paragraph":
            document.add_paragraph(block.text)
        case _:
            raise ValueError(f"a Word document here has no {block.kind} break")


def _table(document: Document, rows: tuple[tuple[str, ...], ...]) -> None:
    table = document.add_table(rows=0, cols=len(rows[0]), style="Table Grid")
    for row in rows:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text


def _repacked(source: io.BytesIO) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in sorted(old.namelist(), key=lambda name: (name != "[Content_Types].xml", name)):
            entry = zipfile.ZipInfo(name, _STAMP.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, old.read(name))
    return target.getvalue()
