"""What a file is, by its content. The name decides only what content cannot: Markdown or text."""

from __future__ import annotations

import io
import re
import zipfile
from importlib import import_module
from pathlib import PurePath
from typing import Literal

from ingest.encoding import decode_text
from ingest.readers.base import Reader
from ragplane.core.errors import StageError

Kind = Literal["pdf", "image", "docx", "html", "markdown", "text"]

_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*")
_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_BINARY_SHARE = 0.05


def reader_for(content: bytes, name: str) -> Reader:
    """The reader for this content. Raises StageError `parse` for an empty or unknown file.

    A reader is imported when it is first needed: some take a second.
    """
    kind = sniff(content, name)
    reader: Reader = getattr(import_module(f"ingest.readers.{kind}"), f"read_{kind}")
    return reader


def sniff(content: bytes, name: str) -> Kind:
    """The kind of this content. Raises StageError `parse` for an empty or unknown file."""
    if not content:
        raise StageError("parse", "the file is empty")
    if b"%PDF-" in content[:1024]:
        return "pdf"
    is_webp = content[:4] == b"RIFF" and content[8:12] == b"WEBP"
    is_bmp = content[:2] == b"BM" and content[6:10] == bytes(4)  # reserved, always zero
    if content.startswith(_IMAGES) or is_webp or is_bmp:
        return "image"
    if content.startswith(b"PK\x03\x04"):
        return _zipped(content)
    return _text_kind(content, name)


def _zipped(content: bytes) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = set(archive.namelist())
    except zipfile.BadZipFile as error:
        raise StageError("parse", f"a broken ZIP container ({error})") from error
    if "word/document.xml" in names:
        return "docx"
    raise StageError("parse", "a ZIP container that is not a DOCX is not a supported type")


def _text_kind(content: bytes, name: str) -> Kind:
    head = decode_text(content)[: 1 << 14] if _may_be_text(content) else None
    if head is None or _looks_binary(head):
        raise StageError("parse", "unknown content: not a PDF, image, DOCX, HTML or text")
    if head.lstrip().startswith("<") and _HTML.search(head[:4096]):
        return "html"
    is_markdown = PurePath(name).suffix.lower() in (".md", ".markdown")
    return "markdown" if is_markdown else "text"


def _may_be_text(content: bytes) -> bool:
    """Whether zero bytes, if any, fit UTF-16 or UTF-32 rather than a binary format."""
    has_mark = content.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff"))
    return has_mark or b"\x00" not in content[: 1 << 14]


def _looks_binary(text: str) -> bool:
    odd = sum(1 for char in text if ord(char) < 32 and char not in "\t\n\r\f\x1b\x0b")
    return odd > _BINARY_SHARE * len(text)
