"""DOCX files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import docx
import pytest

from ingest.parsed import ParsedDocument
from ragplane.core.errors import StageError
from ragplane.core.schema import Block

Read = Callable[..., ParsedDocument]


def saved(document: Any) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def blocks_of(document: Any, read: Read) -> list[Block]:
    [page] = read(saved(document), "a.docx").pages
    return list(page.blocks)


def test_parts_are_read_in_body_order_with_their_roles(read: Read) -> None:
    document = docx.Document()
    document.add_heading("Manual", level=0)
    document.add_heading("Set up", level=2)
    document.add_paragraph("Open  the\tbox.")
    document.add_paragraph("")
    document.add_paragraph("the lamp", style="List Bullet")
    document.add_paragraph("the desk", style="List Number")
    assert [(b.kind, b.level, b.text) for b in blocks_of(document, read)] == [
        ("heading", 1, "Manual"),
        ("heading", 2, "Set up"),
        ("paragraph", 0, "Open the box."),
        ("list_item", 0, "- the lamp"),
        ("list_item", 0, "- the desk"),
    ]


def filled_table(document: Any, rows: list[list[str]]) -> Any:
    table = document.add_table(len(rows), len(rows[0]))
    for row, texts in zip(table.rows, rows, strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    return table


def test_table_rows_carry_their_header(read: Read) -> None:
    document = docx.Document()
    document.add_paragraph("Above.")
    filled_table(document, [["Item", "Price"], ["", ""], ["Lamp | tall", "12"], ["Desk", "80"]])
    document.add_paragraph("Below.")
    assert [(b.text, b.header) for b in blocks_of(document, read)] == [
        ("Above.", None),
        ("| Item | Price |", "| Item | Price |"),
        ("| Lamp \\| tall | 12 |", "| Item | Price |"),
        ("| Desk | 80 |", "| Item | Price |"),
        ("Below.", None),
    ]


def test_merged_cells_are_not_repeated(read: Read) -> None:
    document = docx.Document()
    table = filled_table(document, [["Item", "Price", "Note"], ["Lamp", "", "tall"]])
    table.cell(1, 0).merge(table.cell(1, 1))
    assert [b.text for b in blocks_of(document, read)] == [
        "| Item | Price | Note |",
        "| Lamp | tall |",
    ]


def test_table_of_one_row_is_kept(read: Read) -> None:
    document = docx.Document()
    filled_table(document, [["Item", "Price"]])
    assert [(b.kind, b.text) for b in blocks_of(document, read)] == [
        ("table_row", "| Item | Price |")
    ]


def test_title_is_the_property_then_the_heading_then_the_name(read: Read) -> None:
    document = docx.Document()
    assert read(saved(document), "a_letter.docx").title == "a letter"
    document.add_heading("The Heading")
    assert read(saved(document)).title == "The Heading"
    document.core_properties.title = "The Property"
    assert read(saved(document)).title == "The Property"


def test_document_without_text_is_blank(read: Read) -> None:
    [page] = read(saved(docx.Document())).pages
    assert (page.route, page.blocks) == ("blank", ())


def packed(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def parts_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_file_that_unzips_to_too_much_is_refused_without_unzipping(read: Read) -> None:
    parts = parts_of(saved(docx.Document()))
    parts["word/media/image1.png"] = bytes(40 << 20)
    with pytest.raises(StageError, match="parse: the DOCX unzips to"):
        read(packed(parts))


@pytest.mark.parametrize(
    "change",
    [
        {"word/document.xml": b"<w:document"},
        {"word/document.xml": b""},
        {"[Content_Types].xml": b"<Types"},
        {"[Content_Types].xml": None},
        {"_rels/.rels": None},
        {"_rels/.rels": b"<Relationships/>"},
        {"word/_rels/document.xml.rels": b"<a/>"},
        {"word/styles.xml": b"<a"},
        {"docProps/core.xml": b"<a"},
    ],
    ids=str,
)
def test_broken_file_is_refused_by_name(change: dict[str, bytes | None], read: Read) -> None:
    changed = parts_of(saved(docx.Document())) | change
    with pytest.raises(StageError, match="parse: not a readable DOCX"):
        read(packed({name: part for name, part in changed.items() if part is not None}))


def test_truncated_file_is_refused_by_name(read: Read) -> None:
    content = saved(docx.Document())
    with pytest.raises(StageError, match="parse: a broken ZIP container"):
        read(content[: len(content) // 2])
