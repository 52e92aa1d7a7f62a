"""DOCX files that are broken or hostile."""

from __future__ import annotations

import docx
import pytest
from docx.oxml.ns import nsdecls

from ragplane.core.errors import StageError
from tests.unit.ingest.conftest import Read
from tests.unit.ingest.readers.archives import BOMB_XML, packed, parts_of, with_parts
from tests.unit.ingest.readers.samples import saved


def test_file_that_unzips_to_too_much_is_refused(read: Read) -> None:
    """Behaviour 10."""
    bomb = {"word/media/image1.png": bytes(40 << 20)}
    with pytest.raises(StageError, match="parse: the DOCX unzips to over"):
        read(with_parts(saved(docx.Document()), **bomb))


def test_xml_bomb_is_refused(read: Read) -> None:
    """Behaviour 10."""
    with pytest.raises(StageError, match="parse: the DOCX declares XML entities"):
        read(with_parts(saved(docx.Document()), **{"word/document.xml": BOMB_XML}))


@pytest.mark.parametrize(
    "change",
    [
        {"word/document.xml": b"<w:document"},
        {"word/document.xml": b""},
        {"word/document.xml": b"<document/>"},
        {"[Content_Types].xml": b"<Types"},
        {"_rels/.rels": None},
        {"_rels/.rels": b"<Relationships/>"},
        {"word/_rels/document.xml.rels": b"<a/>"},
        {"word/styles.xml": b"<a"},
        {"docProps/core.xml": b"<a"},
    ],
    ids=str,
)
def test_broken_file_is_refused_by_name(change: dict[str, bytes | None], read: Read) -> None:
    """Behaviour 10."""
    with pytest.raises(StageError, match="parse: not a readable DOCX"):
        read(with_parts(saved(docx.Document()), **change))


def test_truncated_file_is_refused_by_name(read: Read) -> None:
    """Behaviour 10."""
    content = saved(docx.Document())
    with pytest.raises(StageError, match="parse: a broken ZIP container"):
        read(content[: len(content) // 2])


def test_tables_nested_without_end_are_refused_by_name(read: Read) -> None:
    namespace = nsdecls("w")
    depth = 100  # the parser refuses more than 255 levels of elements
    inner = "<w:p/>"
    for _ in range(depth):
        inner = f"<w:tbl><w:tr><w:tc>{inner}</w:tc></w:tr></w:tbl>"
    body = f"<w:document {namespace}><w:body>{inner}</w:body></w:document>".encode()
    parts = parts_of(saved(docx.Document()))
    with pytest.raises(StageError, match="parse: not a readable DOCX"):
        read(packed(parts | {"word/document.xml": body}))
