"""Characters as they were meant: ligatures resolved, hyphens told, no spaces put into CJK.

The mapping is a targeted one: NFKC would also turn x² into x2 and ½ into 1⁄2. Superscripts,
fractions, full-width and other compatibility forms stay as they are.
"""

from __future__ import annotations

import re
import unicodedata

_LATIN_LIGATURES = {
    "\ufb00": "ff",
    "\ufb01": "fi",
    "\ufb02": "fl",
    "\ufb03": "ffi",
    "\ufb04": "ffl",
    "\ufb05": "st",
    "\ufb06": "st",
}
# Presentation forms: Armenian ligatures, Hebrew, Arabic A and B.
_PRESENTATION = (range(0xFB13, 0xFB18), range(0xFB1D, 0xFDFE), range(0xFE70, 0xFEFD))
_RESOLVED = str.maketrans(
    _LATIN_LIGATURES
    | {
        chr(code): unicodedata.normalize("NFKC", chr(code))
        for codes in _PRESENTATION
        for code in codes
    }
    | {"\u00ad": "-", "\u2010": "-", "\u2011": "-", "\x00": ""}  # a drawn hyphen is a hyphen
)
_CJK = (  # without Korean letters and full-width Latin ones and digits
    r"\u2e80-\u312f\u3190-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff9f"
)
_CJK_SPACE = re.compile(rf"(?<=[{_CJK}]) +(?=[{_CJK}])")
_IS_CJK = re.compile(rf"[{_CJK}]")


def resolved(text: str) -> str:
    """Text without ligatures and presentation forms, and without spaces between CJK characters.

    Korean, which parts its words by spaces, and the ideographic space are left alone.
    """
    if text.isascii():
        return text.replace("\x00", "")
    return _CJK_SPACE.sub("", text.translate(_RESOLVED))


def is_cjk(char: str) -> bool:
    """Whether a character belongs to a script that is written without spaces."""
    return _IS_CJK.match(char) is not None
