"""Bytes to text: byte-order mark or plain UTF-16/32, UTF-8, a declared charset, detection."""

from __future__ import annotations

import codecs
import re
import unicodedata

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
_SAMPLE_BYTES = 1 << 16
_HEAD_BYTES = 1 << 12
_NOT_TEXT = ("Cc", "Cn", "Co")  # controls, unassigned, private use
_SPACES = "\t\n\r\f\v"
_MAX_ODD_SHARE = 0.01
_WESTERN = "cp1252"


def decode_text(content: bytes) -> str:
    """The text of `content`. Raises StageError `parse` where no encoding fits."""
    marked = _marked(content) or _unmarked_wide(content)
    if marked:
        return _decode(content, marked)
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


def has_wide_characters(content: bytes) -> bool:
    """Whether this is text in UTF-16 or UTF-32, with a byte-order mark or without."""
    return (_marked(content) or _unmarked_wide(content) or "utf-8").startswith(("utf-16", "utf-32"))


def _marked(content: bytes) -> str | None:
    return next((encoding for mark, encoding in _MARKS if content.startswith(mark)), None)


def _unmarked_wide(content: bytes) -> str | None:
    """UTF-16 or UTF-32 told by where its zero bytes stand, if what it gives is text."""
    head = content[:_HEAD_BYTES]
    if b"\x00" not in head:
        return None
    zeros = [head[place::4].count(0) for place in range(4)]
    characters = len(head) // 4
    if len(content) % 4 == 0 and zeros[3] == characters and zeros[2] > 0:
        candidate = "utf-32-le"
    elif len(content) % 4 == 0 and zeros[0] == characters and zeros[1] > 0:
        candidate = "utf-32-be"
    else:
        candidate = "utf-16-le" if zeros[1] + zeros[3] > zeros[0] + zeros[2] else "utf-16-be"
    return candidate if len(content) % 2 == 0 and _gives_text(head, candidate) else None


def _gives_text(head: bytes, encoding: str) -> bool:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)  # a cut-off end is no error
    except UnicodeDecodeError:
        return False
    odd = sum(1 for char in text if unicodedata.category(char) in _NOT_TEXT and char not in _SPACES)
    return odd <= _MAX_ODD_SHARE * len(text)


def _detected(sample: bytes) -> str:
    """The likeliest encoding; the Western one if it is no less likely than the best."""
    matches = from_bytes(sample)
    best = matches.best()
    if best is None:
        raise StageError("parse", "the bytes are text in no known encoding")
    equals = {
        encoding
        for match in matches
        if match.chaos <= best.chaos and match.coherence >= best.coherence
        for encoding in match.could_be_from_charset
    }
    return _WESTERN if _WESTERN in equals else best.encoding


def _decode(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding, errors="strict")
    except UnicodeDecodeError as error:
        raise StageError("parse", f"the text is not valid {encoding} ({error.reason})") from error
