"""Right-to-left text in logical order, with numbers and Latin words left to right.

A page shows glyphs from left to right; some extractors return that visual order, others the order
of reading. Which one it was is told by letters that stand only at one end of a word. The reversal
is the inverse, for one line, of rule L2 of the Unicode bidirectional algorithm (UAX #9).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_RTL = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LTR = re.compile(r"[^\W\d_\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LTR_LETTER = r"[^\W\d_\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
_NUMBER = r"\d+(?:[.,:/٫٬]\d+)*"
_LTR_RUN = re.compile(
    rf"{_LTR_LETTER}(?:[^\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc()\[\]{{}}]*(?:{_LTR_LETTER}|\d))?"
    rf"|{_NUMBER}%?"
)
_HEBREW_FINALS = frozenset("ךםןףץ")
_ARABIC_FINALS = frozenset("ةى")
_TURNED_LAM_ALEF = re.compile("ا([أإآ])ل")  # the article before a ligature taken apart backwards
_STOPS = (".", "!", "?", "؟", ":", "،")
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")


def has_rtl(text: str) -> bool:
    """Whether any letter of `text` is of a right-to-left script."""
    return not text.isascii() and _RTL.search(text) is not None


def is_rtl(text: str) -> bool:
    """Whether most letters of `text` are of a right-to-left script."""
    if text.isascii():
        return False
    return len(_RTL.findall(text)) > len(_LTR.findall(text))


def in_logical_order(lines: Sequence[str]) -> list[str]:
    """The lines of a document, each right-to-left one in the order of reading.

    Each line is judged by itself; one without evidence follows the others.
    """
    scores = {i: _logical_score(line) for i, line in enumerate(lines) if is_rtl(line)}
    document_is_visual = sum(scores.values()) < 0
    ordered = list(lines)
    for i, score in scores.items():
        visual = score < 0 or (score == 0 and document_is_visual)
        text = _reversed(lines[i]) if visual else _with_upright_brackets(lines[i])
        ordered[i] = _TURNED_LAM_ALEF.sub(r"ال\1", text)
    return ordered


def _logical_score(text: str) -> int:
    """Positive if letters and stops stand as in the order of reading, negative if mirrored."""
    score = 0
    for word in _RTL_WORD.findall(text):
        score += _ends_word(word[-1]) - _ends_word(word[0])
        score += _begins_word(word[0]) - _begins_word(word[-1])
        if len(word) > 3:
            score += word.startswith("ال") - word.endswith("لا")
    stripped = text.strip()
    return score + stripped.endswith(_STOPS) - stripped.startswith(_STOPS)


_RTL_WORD = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]{2,}")


def _ends_word(char: str) -> bool:
    if char in _HEBREW_FINALS or char in _ARABIC_FINALS:
        return True
    return unicodedata.decomposition(char).startswith("<final>")


def _begins_word(char: str) -> bool:
    return unicodedata.decomposition(char).startswith("<initial>")


def places_in_reading_order(visual: str) -> list[int]:
    """The places of signs that stand from left to right, in the order in which they are read."""
    return [
        place
        for start, end, is_ltr in reversed(_runs(visual))
        for place in (range(start, end) if is_ltr else reversed(range(start, end)))
    ]


def _reversed(text: str) -> str:
    """A line in visual order turned round, its left-to-right runs kept."""
    return "".join(
        text[start:end] if is_ltr else _mirrored(text[start:end])
        for start, end, is_ltr in reversed(_runs(text))
    )


def _runs(visual: str) -> list[tuple[int, int, bool]]:
    """(start, end, whether it is read from left to right) of the runs of a right-to-left line."""
    runs, position = [], 0
    for run in _LTR_RUN.finditer(visual):
        runs += [(position, run.start(), False), (run.start(), run.end(), True)]
        position = run.end()
    return [*runs, (position, len(visual), False)]


def _mirrored(text: str) -> str:
    return text[::-1].translate(_MIRRORED)


_BRACKET = re.compile(r"[()\[\]{}]")


def _with_upright_brackets(text: str) -> str:
    """Brackets taken by their shape on the page, not by their role, are exchanged."""
    score = 0
    for match in _BRACKET.finditer(text):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        opens_here = after.isalnum() and not before.isalnum()
        closes_here = before.isalnum() and not after.isalnum()
        sign = 1 if match.group() in "([{" else -1
        score += sign * (opens_here - closes_here)
    return text.translate(_MIRRORED) if score < 0 else text
