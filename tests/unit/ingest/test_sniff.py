"""What a file is, told by its content."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from ingest.sniff import Kind, reader_for, sniff
from ragplane.core.errors import StageError
from tests.unit.ingest.readers.archives import packed

TYPES = "[Content_Types].xml"
ODF = "application/vnd.oasis.opendocument."
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
MAIL = b"From: a@b\nTo: c@d\nSubject: e\nMIME-Version: 1.0\n\ntext"
BMP = b"BM\x8a\x00\x00\x00\x00\x00\x00\x006\x00\x00\x00(\x00\x00\x00" + bytes(30)


def zipped(*names: str, **contents: str) -> bytes:
    return packed(dict.fromkeys(names, "content") | contents)


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (b"%PDF-1.7\n", "a.txt", "pdf"),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj", "a", "pdf"),
        (b"\xef\xbb\xbf\n%PDF-1.4 1 0 obj", "a", "pdf"),
        (b"\x00\x01\x02junk %PDF-1.4\n", "a", "pdf"),
        (b"HTTP/1.1 200 OK\r\n\r\n%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj", "a", "pdf"),
        (b"\x89PNG\r\n\x1a\nrest", "a.pdf", "image"),
        (b"\xff\xd8\xff\xe0rest", "a", "image"),
        (b"II*\x00rest", "a", "image"),
        (b"MM\x00*rest", "a", "image"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "a", "image"),
        (BMP, "a.txt", "image"),
        (zipped(TYPES, "word/document.xml"), "a.zip", "docx"),
        (zipped(TYPES, "ppt/presentation.xml", "ppt/embeddings/a.xlsx"), "a.zip", "pptx"),
        (zipped(TYPES, "xl/workbook.xml"), "a.docx", "xlsx"),
        (zipped(mimetype=f"{ODF}text"), "a", "odt"),
        (zipped(mimetype="application/epub+zip\n"), "a", "epub"),
        (zipped("META-INF/container.xml"), "a", "epub"),
        (MAIL, "a.txt", "eml"),
        (MAIL.decode().encode("utf-16"), "a.txt", "eml"),
        (b"From a@b Fri Mar 1\n" + MAIL, "a", "eml"),
        (b"From: a@b\nSubject: c\n\nd", "a.eml", "eml"),
        (b"<!DOCTYPE html><p>text", "a.txt", "html"),
        (b"\n <html lang=en>", "a.md", "html"),
        (b"<?xml version='1.0'?><!-- a --><html xmlns='b'/>", "a", "html"),
        ("<!doctype html><p>Größe".encode("utf-16"), "a.txt", "html"),
        (b"<p>a fragment", "a.html", "html"),
        (b'{"a": 1}', "a.md", "json"),
        (b'[1, {"a": "b"}]\n', "a", "json"),
        (b'{"a": 1}\n{"a": 2}\n', "a", "json"),
        (b"a,b\n1,2", "a.csv", "csv"),
        (b"a\tb\n1\t2", "A.TSV", "csv"),
        (b"a;b;c\n" * 6, "a.txt", "csv"),
        (b"# Title", "a.md", "markdown"),
        (b"# Title", "A.MARKDOWN", "markdown"),
    ],
)
def test_content_chooses_the_kind(content: bytes, name: str, kind: Kind) -> None:
    """Behaviour 9."""
    assert sniff(content, name) == kind
    assert reader_for(content, name).__name__ == f"read_{kind}"


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"# Title", "a.txt"),
        (b"plain", "a.pdf"),
        (b"a note on <html> tags", "a.txt"),
        (b"<recipe>tea</recipe>", "a.xml"),
        (b"<p>a fragment", "a.txt"),
        ("UTF-16 text".encode("utf-16"), "a"),
        ("UTF-16 text without a mark".encode("utf-16-le"), "a"),
        ("UTF-32 text without a mark".encode("utf-32-be"), "a"),
        (b"one\x0c\ttwo", "a"),  # a form feed between pages
        (b"   \n", "a"),
        (b"A file starts with %PDF-1.4 and ends so.", "a"),
        (b"A file holds:\n%PDF-1.4\n1 0 obj\n<<>>\nendobj\n", "a"),
        (b"%PDF-1.7 is the first line of such a file.", "a"),
        (b"BM25 is a ranking function.", "a"),
        (b"BM\n\n\n\n\n", "a"),
        (b"MZ is the mark of an executable.", "a"),
        (b"ID3 tags hold the title.", "a"),
        (b"RIFF is a container.", "a"),
        (b"Subject: a memo\nTo: all\n\ntext", "a.txt"),
        (b"Note: From: and Subject: are fields.\nReceived: yes\n", "a.txt"),
        (b"[1] a reference\n[2] another", "a.json"),
        (b"Dear all,\nplease come, and bring cake,\n\nyours\n", "a"),
    ],
)
def test_text_is_not_taken_for_something_else(content: bytes, name: str) -> None:
    """Behaviour 9."""
    assert sniff(content, name) == "text"


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "the file is empty"),
        (bytes(range(256)) * 40, "binary data"),
        (b"\x01\x02\x03\x04 with controls", "binary data"),
        (b"\x7fELF\x02\x01\x01" + bytes(60), r"an executable \(ELF\)"),
        (b"MZ\x90\x00\x03" + bytes(60), r"an executable \(Windows\)"),
        (b"GIF89a\x01\x00\x01\x00", "a GIF image"),
        (b"Rar!\x1a\x07\x01\x00", "a RAR archive"),
        (b"\x1f\x8b\x08\x00", "a gzip file"),
        (b"a" * 257 + b"ustar\x00", "a TAR archive"),
        (b"{\\rtf1 text}", "an RTF document"),
        (b"\x00\x00\x00\x18ftypheic", "a media file"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt \x10\x00", "a media file"),
        (OLE, "an old binary Office file"),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted Office document"),
        (zipped("a.txt"), "a ZIP archive"),
        (zipped("word/document.xml"), "a ZIP archive"),
        (zipped(TYPES, "xl/workbook.bin"), "a binary Excel workbook"),
        (zipped(mimetype=f"{ODF}presentation"), "an OpenDocument presentation"),
        (zipped(), "an empty ZIP archive"),
        (b"PK\x03\x04 and no more", "broken ZIP"),
    ],
)
def test_unknown_content_is_refused_by_name_whatever_it_is_called(
    content: bytes, cause: str
) -> None:
    """Behaviour 9."""
    for name in ("a.pdf", "a.txt", "a.docx"):
        with pytest.raises(StageError, match=f"parse: .*{cause}"):
            reader_for(content, name)


def test_mail_with_8_bit_parts_in_several_charsets_is_a_mail() -> None:
    message = EmailMessage()
    message["Subject"], message["From"] = "a", "b@c"
    message.set_content("Größe", charset="iso-8859-1", cte="8bit")
    message.add_attachment("жар".encode("koi8-r"), maintype="text", subtype="plain", cte="8bit")
    assert sniff(message.as_bytes(), "a") == "eml"
