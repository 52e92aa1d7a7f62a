"""Bytes to text: byte-order mark, then UTF-8, then a declared charset, then detection."""

from __future__ import annotations

import codecs
import re

from charset_normalizer import from_bytes

from ragplane.core.errors import StageError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_SAMPLE_BYTES = 1 << 18


def decode_text(content: bytes) -> str:
    """The text of `content`. Raises StageError `parse` where no encoding fits."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _decode(content, encoding)
    declared = _DECLARED.search(content[:2048])
    candidates = ["utf-8", *([declared.group(1).decode("ascii")] if declared else [])]
    for candidate in candidates if b"\x00" not in content[:64] else []:
        try:
            return content.decode(candidate)
        except (UnicodeDecodeError, LookupError):
            continue
    best = from_bytes(content[:_SAMPLE_BYTES]).best()
    if best is None:
        raise StageError("parse", "the bytes are text in no known encoding")
    return _decode(content, best.encoding)


def _decode(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding, errors="strict")
    except UnicodeDecodeError as error:
        raise StageError("parse", f"the text is not valid {encoding} ({error.reason})") from error
