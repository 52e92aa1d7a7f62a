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
_WESTERN = "cp1252"


def decode_text(content: bytes) -> str:
    """The text of `content`. Raises StageError `parse` where no encoding fits."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _decode(content, encoding)
    declared = _DECLARED.search(content[:2048])
    candidates = ["utf-8", *([declared.group(1).decode("ascii")] if declared else [])]
    for candidate in candidates if b"\x00" not in content[:64] else []:
        try:
            text = content.decode(candidate)
            text.encode("utf-8")  # `unicode_escape`, declared, can give lone surrogates
        except (UnicodeError, LookupError):
            continue
        return text
    return _decode(content, _detected(content[:_SAMPLE_BYTES]))


def _detected(sample: bytes) -> str:
    """The likeliest encoding; the Western one if it is as likely as the best."""
    matches = from_bytes(sample)
    best = matches.best()
    if best is None:
        raise StageError("parse", "the bytes are text in no known encoding")
    rank = (best.chaos, best.coherence)
    equals = [match.encoding for match in matches if (match.chaos, match.coherence) == rank]
    return _WESTERN if _WESTERN in equals else best.encoding


def _decode(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding, errors="strict")
    except UnicodeDecodeError as error:
        raise StageError("parse", f"the text is not valid {encoding} ({error.reason})") from error
