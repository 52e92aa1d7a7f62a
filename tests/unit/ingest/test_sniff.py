"""What a file is, told by its content."""

from __future__ import annotations

import io
import zipfile

import pytest

from ingest.readers.base import Reader
from ingest.readers.docx import read_docx
from ingest.readers.html import read_html
from ingest.readers.image import read_image
from ingest.readers.markdown import read_markdown
from ingest.readers.pdf import read_pdf
from ingest.readers.text import read_text
from ingest.sniff import reader_for
from ragplane.core.errors import StageError


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "content")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "name", "reader"),
    [
        (b"%PDF-1.7\n", "a.txt", read_pdf),
        (b"\n\njunk before %PDF-1.4\n", "a", read_pdf),
        (b"\x89PNG\r\n\x1a\nrest", "a.pdf", read_image),
        (b"\xff\xd8\xff\xe0rest", "a", read_image),
        (b"II*\x00rest", "a", read_image),
        (b"MM\x00*rest", "a", read_image),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "a", read_image),
        (zipped("word/document.xml"), "a.zip", read_docx),
        (b"<!DOCTYPE html><p>text", "a.txt", read_html),
        (b"\n <html lang=en>", "a.md", read_html),
        ("<!doctype html><p>Größe".encode("utf-16"), "a.txt", read_html),
        (b"# Title", "a.md", read_markdown),
        (b"# Title", "A.MARKDOWN", read_markdown),
        (b"# Title", "a.txt", read_text),
        (b"plain", "a.pdf", read_text),
        (b"a note on <html> tags", "a.txt", read_text),
        (b"<recipe>tea</recipe>", "a.xml", read_text),
        ("UTF-16 text".encode("utf-16"), "a", read_text),
        (b"one\x0c\ttwo", "a", read_text),  # a form feed between pages
        (b"   \n", "a", read_text),
    ],
)
def test_content_chooses_the_reader(content: bytes, name: str, reader: Reader) -> None:
    assert reader_for(content, name) is reader


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "empty"),
        (bytes(range(256)) * 40, "unknown content"),
        (b"\x7fELF\x02\x01\x01" + bytes(60), "unknown content"),
        (b"GIF89a\x01\x00\x01\x00", "unknown content"),
        (b"\x01\x02\x03\x04 with controls", "unknown content"),
        (zipped("xl/workbook.xml"), "not a DOCX"),
        (zipped(), "unknown content"),
        (b"PK\x03\x04 and no more", "broken ZIP"),
    ],
)
def test_unknown_content_is_refused_whatever_the_name_says(content: bytes, cause: str) -> None:
    for name in ("a.pdf", "a.txt", "a.docx"):
        with pytest.raises(StageError, match=f"parse: .*{cause}"):
            reader_for(content, name)
