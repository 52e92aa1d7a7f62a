"""Arabic as PDFs have it: joined glyphs from left to right, with ligatures."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

import pymupdf

from tests.unit.ingest.pdf.conftest import Draw

SENTENCES = (
    "وافقت اللجنة على الأرصفة الجديدة في عام 2031.",
    "لا بد من حل المشكلات خلال الاجتماع الآخر.",
    "يفتح الميناء الرئيسي كل يوم إلا الأحد.",
    "كانت الرحلة طويلة ولكن الإنتاجية تحسنت.",
    "دفعت الشركة 1,250.50 دينار لإدارة الميناء.",
)
_SCRIPT = 6  # Arabic, in MuPDF's numbers of scripts
_FORMS = ("initial", "medial", "final", "isolated")
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")


@cache
def _forms() -> dict[tuple[str, str], str]:
    """The presentation form of letters, by its name (Unicode, Arabic Presentation Forms-B)."""
    forms: dict[tuple[str, str], str] = {}
    for code in range(0xFE80, 0xFEFD):
        form, *letters = unicodedata.decomposition(chr(code)).split()
        forms["".join(chr(int(letter, 16)) for letter in letters), form[1:-1]] = chr(code)
    return forms


def shaped(text: str) -> str:
    """The text with each letter in the form that its neighbours ask for, lam-alef as one glyph."""
    letters = [letter for letter in re.split("(ل[اأإآ]|.)", text) if letter]
    forms = _forms()
    return "".join(
        forms.get((letter, _form(before, letter, after)), letter)
        for before, letter, after in zip(["", *letters], letters, [*letters[1:], ""], strict=False)
    )


def _form(before: str, letter: str, after: str) -> str:
    forms = _forms()
    joins_before = (before, "initial") in forms and (letter, "final") in forms
    joins_after = (letter, "initial") in forms and (after, "final") in forms
    return _FORMS[2 * (not joins_after) + (joins_before if joins_after else not joins_before)]


def drawn_order(text: str) -> str:
    """The glyphs of a line from left to right; numbers stay as they are."""
    turned = shaped(text)[::-1]
    return _NUMBER.sub(lambda number: number.group()[::-1], turned)


def arabic(*lines: str) -> Draw:
    """Draws the lines at the right margin."""

    def draw(page: Any) -> None:
        font = pymupdf.Font(script=_SCRIPT, language="ar")
        page.insert_font("naskh", fontbuffer=font.buffer)
        for row, line in enumerate(lines):
            glyphs = drawn_order(line)
            x = 520 - font.text_length(glyphs, 12)
            page.insert_text((x, 90 + 24 * row), glyphs, fontname="naskh", fontsize=12)

    return draw


def by_letters(content: bytes) -> bytes:
    """The PDF with its glyphs mapped to plain letters, a ligature to two, as Word does."""
    with pymupdf.open(stream=content, filetype="pdf") as pdf:
        for number in range(1, pdf.xref_length()):
            stream = pdf.xref_stream(number) if pdf.xref_is_stream(number) else None
            if stream and b"begincmap" in stream:
                pdf.update_stream(number, _RANGE.sub(_plain, stream))
        changed: bytes = pdf.tobytes()
    return changed


_RANGE = re.compile(rb"<([0-9a-f]{4})> <([0-9a-f]{4})> <(f[0-9a-f]{3})>", re.IGNORECASE)


def _plain(entry: re.Match[bytes]) -> bytes:
    first, last, code = (int(number, 16) for number in entry.groups())
    mapped = (unicodedata.normalize("NFKC", chr(code + n)) for n in range(last - first + 1))
    letters = " ".join(f"<{text.encode('utf-16-be').hex()}>" for text in mapped)
    return f"<{first:04x}> <{last:04x}> [{letters}]".encode()
