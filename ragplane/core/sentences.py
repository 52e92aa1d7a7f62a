"""Sentence borders, as character spans, for any script. A pure function without a model."""

from __future__ import annotations

import re

_ABBREVIATIONS = frozenset(
    "e.g i.e etc cf vs approx no nos fig figs sec sect art dr mr mrs ms prof st p pp vol ed jan "
    "feb mar apr jun jul aug sep sept oct nov dec inc ltd co".split()
)
_BORDER = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)"  # Latin: punctuation, then space
    r"|[。！？]+[」』）]*"  # CJK: no space needed
    r"|\n"  # one block a line
)
_LAST_WORD = re.compile(r"([\w.]+)\.$")
_LAST_WORD_CHARACTERS = 24  # looked back at most: time must not grow with the square of the text
_FOLLOWING = re.compile(r"\s*(\S?)")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences of `text`, trimmed of white space, in order, never empty.

    Every character that is not white space lies in exactly one span. A line break ends a sentence.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _BORDER.finditer(text):
        if match.group()[0] in ".!?…" and _continues(text, start, match):
            continue
        _append_trimmed(spans, text, start, match.end())
        start = match.end()
    _append_trimmed(spans, text, start, len(text))
    return spans


def _continues(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether the punctuation belongs to an abbreviation, an initial or a list number."""
    if match.group() != ".":
        return False
    following = _FOLLOWING.match(text, match.end())
    if following and following.group(1).islower():
        return True
    earliest = max(start, match.end() - _LAST_WORD_CHARACTERS)
    word = _LAST_WORD.search(text, earliest, match.end())
    if word is None:
        return False
    stem = word.group(1)
    is_initial = len(stem) == 1 and stem.isupper()
    is_list_number = stem.replace(".", "").isdigit() and not text[start : word.start()].strip()
    return stem.lower() in _ABBREVIATIONS or is_initial or is_list_number


def _append_trimmed(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        begin = start + len(piece) - len(piece.lstrip())
        spans.append((begin, begin + len(stripped)))
