"""What a file is, by its content. The name decides only what content cannot, such as Markdown."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from importlib import import_module
from pathlib import PurePath
from typing import Literal

from ingest.encoding import decode_text, has_wide_characters
from ingest.readers.base import Reader
from ragplane.core.errors import StageError

Kind = Literal[
    "pdf", "image", "docx", "pptx", "xlsx", "odt", "epub",
    "eml", "html", "json", "csv", "markdown", "text",
]  # fmt: skip

_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*")
_BMP_HEADER_BYTES = (12, 40, 52, 56, 64, 108, 124)
_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_HTML_TAG = re.compile(r"<(?:p|div|table|ul|ol|h[1-6]|span|br|a|title|meta)\b", re.IGNORECASE)
_PDF = re.compile(rb"%PDF-\d?\.?\d?")
_PDF_OBJECT = re.compile(rb"\b\d+\s+\d+\s+obj\b")
_PDF_LEAD_BYTES = 1024
_HEAD_BYTES = 1 << 14
_BINARY_SHARE = 0.05
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_REFUSED = {
    b"Rar!\x1a\x07": "a RAR archive",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"\x1f\x8b": "a gzip file",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an XZ file",
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"PK\x05\x06": "an empty ZIP archive",
    b"\x7fELF": "an executable (ELF)",
    b"MZ": "an executable (Windows)",
    b"\xca\xfe\xba\xbe": "an executable (Java class or Mach-O)",
    b"\xcf\xfa\xed\xfe": "an executable (Mach-O)",
    b"{\\rtf": "an RTF document",
    b"%!PS": "a PostScript document",
    b"GIF8": "a GIF image",
    b"8BPS": "a Photoshop image",
    b"SQLite format 3\x00": "an SQLite database",
    b"PAR1": "a Parquet file",
    b"OggS": "an Ogg recording",
    b"ID3": "an MP3 recording",
    b"fLaC": "a FLAC recording",
    b"\x1aE\xdf\xa3": "a Matroska video",
    b"wOFF": "a font",
    b"OTTO": "a font",
}
_TEXT_LIKE_MAGIC = (b"BZh", b"MZ", b"ID3", b"PAR1", b"8BPS", b"GIF8", b"OTTO", b"wOFF", b"OggS")
_ZIPPED: dict[str, Kind] = {"word": "docx", "ppt": "pptx", "xl": "xlsx"}
_BROKEN_ZIP = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError
)  # fmt: skip
_ODF_MIME = "application/vnd.oasis.opendocument."
_EXTENSIONS: dict[str, Kind] = {
    ".md": "markdown", ".markdown": "markdown", ".csv": "csv", ".tsv": "csv", ".tab": "csv",
}  # fmt: skip


def reader_for(content: bytes, name: str) -> Reader:
    """The reader for this content. Raises StageError `parse` for an empty or unknown file.

    A reader is imported when it is first needed: some take a second.
    """
    kind = sniff(content, name)
    reader: Reader = getattr(import_module(f"ingest.readers.{kind}"), f"read_{kind}")
    return reader


def sniff(content: bytes, name: str) -> Kind:
    """The kind of this content.

    Raises StageError `parse` for an empty, encrypted or unknown file, saying what it seems to be.
    """
    if not content:
        raise StageError("parse", "the file is empty")
    if _is_pdf(content):
        return "pdf"
    if _is_image(content):
        return "image"
    if content.startswith(b"PK\x03\x04"):
        return _zipped(content)
    if content.startswith(_OLE):
        if _OLE_ENCRYPTED in content:
            raise StageError("parse", "encrypted Office document (it has a password)")
        raise _refusal("an old binary Office file (OLE: DOC, XLS, PPT or MSG)")
    _refuse_known(content)
    return _text_kind(content, name)


def _is_pdf(content: bytes) -> bool:
    """A PDF header near the start; where text stands before or after it, more must speak for it."""
    header = _PDF.search(content, 0, _PDF_LEAD_BYTES)
    if header is None:
        return False
    lead, head = content[: header.start()], content[:_HEAD_BYTES]
    has_object = _PDF_OBJECT.search(head, header.end()) is not None
    if not lead.strip(b"\xef\xbb\xbf\x00 \t\r\n\f"):
        rest_of_line = re.split(rb"[\r\n]", content[header.end() : header.end() + 80])[0]
        return has_object or not rest_of_line.strip() or not _is_plain(head)
    starts_line = lead.endswith((b"\r", b"\n"))
    return not _is_plain(lead) or (starts_line and has_object and not _is_plain(head))


def _is_plain(head: bytes) -> bool:
    """Whether these bytes are text as UTF-8."""
    text = head.decode("utf-8", errors="replace")
    return "\x00" not in text and text.count("\ufffd") <= 1 and not _looks_binary(text)


def _is_image(content: bytes) -> bool:
    is_webp = content[:4] == b"RIFF" and content[8:12] == b"WEBP"
    header_bytes = int.from_bytes(content[14:18], "little")
    is_bmp = content[:2] == b"BM" and header_bytes in _BMP_HEADER_BYTES
    return content.startswith(_IMAGES) or is_webp or is_bmp


def _zipped(content: bytes) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = set(archive.namelist())
            mime = b""
            if "mimetype" in names:
                with archive.open("mimetype") as stream:
                    mime = stream.read(100)
    except _BROKEN_ZIP as error:
        raise StageError("parse", f"a broken ZIP container ({error})") from error
    kind = mime.decode("ascii", errors="replace").strip()
    if kind.startswith((f"{_ODF_MIME}text", "application/epub+zip")):
        return "epub" if "epub" in kind else "odt"
    if kind.startswith(_ODF_MIME):
        raise _refusal(f"an OpenDocument {kind.removeprefix(_ODF_MIME)}")
    if "META-INF/container.xml" in names:
        return "epub"
    if "xl/workbook.bin" in names:
        raise _refusal("a binary Excel workbook (XLSB)")
    if "[Content_Types].xml" in names:
        folders = {name.split("/", 1)[0] for name in names}
        for folder, zipped_kind in _ZIPPED.items():
            if folder in folders:
                return zipped_kind
    raise _refusal("a ZIP archive")


def _refuse_known(content: bytes) -> None:
    for magic, what in _REFUSED.items():
        if content.startswith(magic):
            if magic in _TEXT_LIKE_MAGIC and _is_plain(content[:_HEAD_BYTES]):
                continue
            raise _refusal(what)
    if content[257:262] == b"ustar":
        raise _refusal("a TAR archive")
    if content[4:8] == b"ftyp":
        raise _refusal("a media file (MP4, HEIC or AVIF)")
    if content[:4] == b"RIFF" and not _is_plain(content[:_HEAD_BYTES]):
        raise _refusal("a media file (WAV or AVI)")


def _text_kind(content: bytes, name: str) -> Kind:
    from ingest.readers.mail_headers import is_mail

    extension = PurePath(name).suffix.lower()
    is_wide = has_wide_characters(content)
    if not is_wide and is_mail(content[:_HEAD_BYTES].decode("latin-1"), name):
        return "eml"
    if b"\x00" in content[:_HEAD_BYTES] and not is_wide:
        raise _refusal("binary data")
    text = decode_text(content)
    head = text[:_HEAD_BYTES]
    if _looks_binary(head):
        raise _refusal("binary data")
    if is_wide and is_mail(head, name):
        return "eml"
    if _is_html(head, extension):
        return "html"
    return _structure(text, extension)


def _is_html(head: str, extension: str) -> bool:
    if not head.lstrip("\ufeff \t\r\n").startswith("<"):
        return False
    is_named = extension in (".html", ".htm", ".xhtml")
    return bool(_HTML.search(head[:4096]) or (is_named and _HTML_TAG.search(head)))


def _structure(text: str, extension: str) -> Kind:
    """JSON by its syntax; Markdown and CSV by the name, or CSV where it is plainly a table."""
    from ingest.readers.csv import is_table
    from ingest.readers.json import is_json

    if is_json(text):
        return "json"
    named = _EXTENSIONS.get(extension)
    return named or ("csv" if is_table(text) else "text")


def _looks_binary(text: str) -> bool:
    odd = sum(1 for char in text if ord(char) < 32 and char not in "\t\n\r\f\x1b\x0b")
    return odd > _BINARY_SHARE * len(text)


def _refusal(what: str) -> StageError:
    return StageError("parse", f"{what} is not a supported type")
