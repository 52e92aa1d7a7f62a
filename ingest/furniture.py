"""Running heads and feet: lines in the margins that repeat over pages, with their numbers.

A number counts as a page number if it keeps its distance to the page's place in the file; other
numbers are text, so that "Chapter 3" at the top of a page is not taken for "Chapter 4".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ingest.headings import Fonts
from ingest.parsed import Line, RawPage

_MARGIN_SHARE = 0.12
_MARGIN_ROWS = 3  # at each end of a page; a row deeper in it is text
_MIN_PAGES = 3
_MIN_DENSITY = 0.4  # of the pages from the first to the last that have it
_MIN_PART = 0.5  # of a line must repeat; a chapter's name in it may change
_ALIKE = 0.8  # of the characters of a recognised line, which may be misread
_TITLE_SCALE = 1.25  # times the body's size: at the top of a page it may be a heading
_TOKEN = re.compile(r"\d+|[^\W\d_]+|[^\w\s]")
_ROMAN = re.compile(r"(?=.)x{0,3}(?:ix|iv|v?i{0,3})")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10}

Key = tuple[str, ...]


class _Candidate(NamedTuple):
    page: int  # its place in the document, from 0
    line: Line
    at_top: bool
    outermost: bool
    tokens: Key
    large: bool


def furniture(raw_pages: Sequence[RawPage], fonts: Fonts) -> set[tuple[int, int]]:
    """The lines that are furniture, as (place of the page in `raw_pages`, id of the line)."""
    if len(raw_pages) < _MIN_PAGES:
        return set()
    candidates = list(_candidates(raw_pages, fonts))
    numbers = _page_numbers(candidates)
    keyed = [(one, _key(one, numbers)) for one in candidates]
    repeated = _repeated(keyed, len(raw_pages))
    found = {(one.page, id(one.line)) for one, key in keyed if _is_furniture(one, key, repeated)}
    return found | {
        (one.page, id(one.line))
        for one, key in keyed
        if one.line.confidence is not None and _is_misread(one, key, repeated)
    }


def _candidates(raw_pages: Sequence[RawPage], fonts: Fonts) -> Iterator[_Candidate]:
    for page, raw in enumerate(raw_pages):
        for at_top in (True, False):
            for depth, row in enumerate(_margin_rows(raw, at_top)):
                for line in row:
                    tokens = tuple(_TOKEN.findall(line.text.casefold()))
                    large = at_top and line.font_size_points >= _TITLE_SCALE * fonts.body_points
                    yield _Candidate(page, line, at_top, depth == 0, tokens, large)


def _margin_rows(raw: RawPage, at_top: bool) -> list[list[Line]]:
    """The outermost rows of a page's upper or lower margin, from the edge inwards."""
    margin = _MARGIN_SHARE * raw.height_points
    depths = [
        (line.bbox.y0 if at_top else raw.height_points - line.bbox.y1, line)
        for paragraph in raw.paragraphs
        for line in paragraph
        if (line.bbox.y1 <= margin if at_top else line.bbox.y0 >= raw.height_points - margin)
    ]
    rows: list[list[Line]] = []
    reached = float("-inf")
    for depth, line in sorted(depths, key=lambda pair: pair[0]):
        if rows and depth - reached < line.font_size_points / 2:
            rows[-1].append(line)
        elif len(rows) == _MARGIN_ROWS:
            break
        else:
            rows.append([line])
            reached = depth
    return rows


def _number(token: str) -> int | None:
    """The value of an Arabic or a small Roman number."""
    if token.isdecimal():
        return int(token) if len(token) < 7 else None
    if not _ROMAN.fullmatch(token):
        return None
    values = [_ROMAN_VALUES[char] for char in token]
    following = [*values[1:], 0]
    return sum(-one if one < after else one for one, after in zip(values, following, strict=True))


def _page_numbers(candidates: Sequence[_Candidate]) -> set[int]:
    """Distances between printed and real page numbers that hold on several pages."""
    pages: defaultdict[int, set[int]] = defaultdict(set)
    for one in candidates:
        for token in {*one.tokens[:1], *one.tokens[-1:], *one.tokens[1:2]}:
            if (value := _number(token)) is not None:
                pages[value - one.page].add(one.page)
    return {distance for distance, on in pages.items() if _recurs(on)}


def _recurs(pages: set[int]) -> bool:
    return len(pages) >= _MIN_PAGES and len(pages) >= _MIN_DENSITY * (max(pages) - min(pages) + 1)


def _key(one: _Candidate, numbers: set[int]) -> Key:
    if one.large and len(one.tokens) > 1:
        return one.tokens  # "Chapter 4" on page 4
    key = []
    for token in one.tokens:
        value = _number(token)
        is_page_number = value is not None and value - one.page in numbers
        key.append("#" if is_page_number else token)
    return tuple(key)


def _repeated(keyed: Sequence[tuple[_Candidate, Key]], pages: int) -> set[tuple[bool, Key]]:
    """Whole lines and beginnings and ends of lines that recur in the same margin.

    Large ones must stand on a good part of all pages: slides may share a title for a while.
    """
    on: defaultdict[tuple[bool, Key], set[int]] = defaultdict(set)
    large: set[tuple[bool, Key]] = set()
    for one, key in keyed:
        for part in _parts(key):
            on[one.at_top, part].add(one.page)
        if one.large:
            large.add((one.at_top, key))
    return {
        key
        for key, found in on.items()
        if _recurs(found) and (key not in large or len(found) >= _MIN_DENSITY * pages)
    }


def _parts(key: Key) -> Iterator[Key]:
    """The line itself, and what is left of it when up to half is cut off at one end."""
    yield key
    total = sum(map(len, key))
    for cut in range(1, len(key)):
        if sum(map(len, key[cut:])) >= _MIN_PART * total:
            yield key[cut:]
        if sum(map(len, key[:-cut])) >= _MIN_PART * total:
            yield key[:-cut]


def _is_furniture(one: _Candidate, key: Key, repeated: set[tuple[bool, Key]]) -> bool:
    if one.large:
        return (one.at_top, key) in repeated
    if one.outermost and len(key) > 1 and "#" in (key[0], key[-1]):
        return True  # a running title beside the page number
    return any((one.at_top, part) in repeated for part in _parts(key))


def _is_misread(one: _Candidate, key: Key, repeated: set[tuple[bool, Key]]) -> bool:
    text = " ".join(key)
    return any(
        SequenceMatcher(None, text, " ".join(other), autojunk=False).ratio() >= _ALIKE
        for at_top, other in repeated
        if at_top == one.at_top and abs(len(text) - len(" ".join(other))) < 0.3 * len(text)
    )
