"""ODT files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ingest.parsed import ParsedDocument
from ragplane.core.errors import StageError
from tests.unit.ingest.readers.archives import BOMB_XML, packed

Read = Callable[..., ParsedDocument]

SPACES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in {
        "office": "office", "text": "text", "table": "table", "draw": "drawing", "meta": "meta",
    }.items()
)  # fmt: skip
MIME = "application/vnd.oasis.opendocument.text"


def odt(body: str, title: str = "", **parts: bytes) -> bytes:
    content = (
        f"<office:document-content {SPACES}><office:body><office:text>{body}</office:text>"
        "</office:body></office:document-content>"
    )
    meta = (
        f'<office:document-meta {SPACES} xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<office:meta><dc:title>{title}</dc:title></office:meta></office:document-meta>"
    )
    return packed({"mimetype": MIME, "content.xml": content, "meta.xml": meta} | parts)


def blocks(document: ParsedDocument) -> list[tuple[str, int, str]]:
    [page] = document.pages
    return [(block.kind, block.level, block.text) for block in page.blocks]


def test_parts_are_read_in_body_order_with_their_roles(read: Read) -> None:
    """Behaviour 9."""
    document = read(
        odt(
            '<text:h text:outline-level="2">Set up</text:h>'
            "<text:p>Open<text:s text:c='3'/>the <text:span>box</text:span><text:tab/>now"
            "<text:line-break/>or later.</text:p><text:section><text:p>In a section.</text:p>"
            "</text:section><text:list><text:list-item><text:p>outer</text:p><text:list>"
            "<text:list-item><text:p>inner</text:p></text:list-item></text:list>"
            "</text:list-item></text:list>",
            title="Manual",
        )
    )
    assert blocks(document) == [
        ("heading", 2, "Set up"),
        ("paragraph", 0, "Open the box now or later."),
        ("paragraph", 0, "In a section."),
        ("list_item", 0, "- outer"),
        ("list_item", 0, "  - inner"),
    ]
    assert (document.title, document.mime) == ("Manual", MIME)


def test_table_rows_carry_their_header_and_merged_cells_stand_once(read: Read) -> None:
    """Behaviour 13."""
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    covered = "<table:covered-table-cell/>"
    rows = [
        cell.format("", "Item") + cell.format("", "Price") + cell.format("", "Note"),
        cell.format(' table:number-columns-spanned="2"', "Lamp") + covered
        + cell.format(' table:number-rows-spanned="2"', "tall"),
        cell.format(' table:number-columns-repeated="2"', "x") + covered,
    ]  # fmt: skip
    lines = [f"<table:table-row>{row}</table:table-row>" for row in rows]
    table = f"<table:table><table:table-header-rows>{lines[0]}</table:table-header-rows>"
    [page] = read(odt(f"{table}{lines[1]}{lines[2]}</table:table>")).pages
    header = "| Item | Price | Note |"
    assert [(block.text, block.header) for block in page.blocks] == [
        (header, header),
        ("| Lamp |  | tall |", header),
        ("| x | x |  |", header),
    ]


def test_comments_deletions_and_headers_are_left_out_and_notes_follow(read: Read) -> None:
    note = (
        "<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>A source.</text:p></text:note-body></text:note>"
    )
    document = read(
        odt(
            "<text:tracked-changes><text:changed-region><text:deletion><text:p>gone</text:p>"
            "</text:deletion></text:changed-region></text:tracked-changes>"
            f"<text:p>A claim{note}, <office:annotation><text:p>remark</text:p>"
            "</office:annotation>shown.</text:p><text:p>Below.</text:p>"
        )
    )
    assert [text for _, _, text in blocks(document)] == [
        "A claim[1], shown.",
        "[1] A source.",
        "Below.",
    ]


def test_text_box_stands_after_its_paragraph(read: Read) -> None:
    box = "<draw:frame><draw:text-box><text:p>In the box.</text:p></draw:text-box></draw:frame>"
    found = blocks(read(odt(f"<text:p>Above.{box}</text:p>")))
    assert [text for _, _, text in found] == ["Above.", "In the box."]


def test_repeated_cells_are_bounded(read: Read) -> None:
    """Behaviour 10."""
    cell = '<table:table-cell table:number-columns-repeated="99999999"><text:p>x</text:p>'
    row = f"<table:table-row>{cell}</table:table-cell></table:table-row>"
    [page] = read(odt(f"<table:table>{row}{row}</table:table>")).pages
    assert page.blocks[0].text.count("x") == 64


def test_encrypted_file_is_refused_by_name(read: Read) -> None:
    """Behaviour 10."""
    manifest = (
        b'<m:manifest xmlns:m="m"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>'
    )
    with pytest.raises(StageError, match="parse: encrypted ODT"):
        read(odt("", **{"META-INF/manifest.xml": manifest}))


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"<office", "not a readable ODT"),
        (b"<a/>", "no body of text"),
        (BOMB_XML, "declares XML entities"),
    ],
)
def test_broken_file_is_refused_by_name(content: bytes, cause: str, read: Read) -> None:
    """Behaviour 10."""
    with pytest.raises(StageError, match=f"parse: .*{cause}"):
        read(packed({"mimetype": MIME, "content.xml": content}))


def test_other_formats_of_the_family_are_refused_by_name(read: Read) -> None:
    """Behaviour 9."""
    with pytest.raises(StageError, match="an OpenDocument spreadsheet is not a supported type"):
        read(packed({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}))
