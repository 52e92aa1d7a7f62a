"""What is measured on a page to choose its route. Pure functions over the page's content."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

from ingest.pdf.base import PageContent, Shape, TextSpan
from ingest.pdf.geometry import coverage
from ragplane.core.schema import BBox, PageSignals

# Stands for no character: U+FFFD, private use, controls other than white space.
_UNMAPPED = re.compile(
    "[\ufffd\ue000-\uf8ff\U000f0000-\U0010fffd\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"
)
_GLYPH_NUMBER = re.compile(r"\(cid:\d+\)")
_SPACE = re.compile(r"\s+")
_UNMAPPED_FONT_SHARE = 0.5

_SAMPLED_WORDS = 400
_EDGES = "()[]{}<>\"'“”‘’«»„.,;:!?…*•·–—-/|©®°%$€£#&+=_~^"
_ADDRESS = re.compile(r"@|://|^www\.")
_SYMBOL_INSIDE = re.compile(r"\w[~^|\\{}<>*#%§¬¢¤¥¦!;«»]+\w")
_PART = re.compile(r"[\W_]+")
_NOT_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
_VOWEL = re.compile(r"[aeiouyàáâãäåæèéêëìíîïòóôõöøœùúûüýāăąēėęěīįıōőūůűų]", re.IGNORECASE)
_CASED = re.compile(r"[^\W\d_](?:[^\W\d_A-Z]*|[^\W\d_a-z]+s?)|M[a]?c[A-Z][a-z]+")
_LONG_RUN = re.compile(r"[bcdfghjklmnpqrstvwxz]{8}|(.)\1{3}", re.IGNORECASE)

_ODD_PAIR = re.compile(r"q[b-df-hj-np-tv-z]|[bcdfghjkmpqrsvwz]x", re.IGNORECASE)
_MAX_ACRONYM = 4

_THIN_POINTS = 2.0
_MIN_RULE_POINTS = 8.0
_MIN_GUTTER_POINTS = 8
_COLUMN_ROWS = 4
_BRIDGING_SHARE = 0.1  # of the lines may bridge a gutter: titles, footers


def measure(content: PageContent, width: float, height: float, rotation: int) -> PageSignals:
    """The signals of a page of this size in points, its hidden text already taken out."""
    spans = [span for line in content.lines for span in line.spans]
    text = "\n".join("".join(span.text for span in line.spans) for line in content.lines)
    words = text.split()
    solid = "".join(words)
    return PageSignals(
        characters=len(solid),
        words=len(words),
        unmapped_share=unmapped_share(solid),
        image_coverage=coverage(content.images, BBox(0, 0, width, height)),
        drawings=len(content.shapes),
        invisible_characters=_characters(span for span in spans if not span.painted),
        unmapped_font_share=_unmapped_font_share(spans, solid),
        characters_under_image=_characters(
            span for span in spans if span.painted and span.covered == "image"
        ),
        word_likeness=word_likeness(words),
        columns=column_count([line.bbox for line in content.lines], width),
        ruled_lines=_ruled_lines(content.shapes),
        rotation=rotation,
    )


def unmapped_share(text: str) -> float:
    """Share of characters that stand for no character: U+FFFD, private use, controls, (cid:12)."""
    solid = _SPACE.sub("", text)
    return _unmapped(solid) / len(solid) if solid else 0.0


def _unmapped(solid: str) -> int:
    numbers = sum(map(len, _GLYPH_NUMBER.findall(solid))) if "(cid:" in solid else 0
    return numbers + len(_UNMAPPED.findall(solid))


def _unmapped_font_share(spans: Sequence[TextSpan], solid: str) -> float:
    """Share of the page's characters in fonts most of whose glyphs have no character."""
    if not _unmapped(solid):
        return 0.0
    by_font: dict[str, list[str]] = {}
    for span in spans:
        by_font.setdefault(span.font, []).append(span.text)
    texts = [_SPACE.sub("", "".join(texts)) for texts in by_font.values()]
    bad = sum(len(text) for text in texts if unmapped_share(text) > _UNMAPPED_FONT_SHARE)
    return min(1.0, bad / len(solid))


def _characters(spans: Iterable[TextSpan]) -> int:
    return sum(len(_SPACE.sub("", span.text)) for span in spans)


def word_likeness(words: Sequence[str]) -> float:
    """Share of words that look like words of some language, 1.0 where none can be judged.

    Judged by shape, without a dictionary: letters with a vowel, in a usual mixture of capitals,
    without symbols between them. Numbers and codes are not judged. Long pages are
    sampled evenly.
    """
    step = max(1, len(words) // _SAMPLED_WORDS)
    verdicts = [verdict for word in words[::step] if (verdict := _is_word(word)) is not None]
    return sum(verdicts) / len(verdicts) if verdicts else 1.0


@lru_cache(maxsize=4096)
def _is_word(word: str) -> bool | None:
    if _UNMAPPED.search(word):
        return False
    if _ADDRESS.search(word):
        return None
    if len(word) == 1 and word.isalpha() and word.islower():
        return None if _VOWEL.search(word) or _NOT_LATIN.search(word) else False
    core = word.strip(_EDGES)
    if not core:
        return None if len(set(word)) < 3 or any(map(str.isdigit, word)) else False
    if _SYMBOL_INSIDE.search(core):
        return False
    verdicts = {_is_word_part(part) for part in _PART.split(core) if part} - {None}
    return None if not verdicts else verdicts == {True}


def _is_word_part(part: str) -> bool | None:
    """Whether letters look like a word; None for codes, numbers and single letters."""
    if _NOT_LATIN.search(part):
        return True
    if digits := sum(map(str.isdigit, part)):
        is_code = part.upper() == part or part[0].isdigit() or 2 * digits >= len(part)
        return None if is_code else False
    if len(part) == 1:
        return None
    if not part.isalpha() or not _CASED.fullmatch(part) or _LONG_RUN.search(part):
        return False
    if _ODD_PAIR.search(part) or (len(part) > _MAX_ACRONYM and len(set(part)) <= 2):
        return False
    short = len(part) <= (_MAX_ACRONYM if part.isupper() else 2)
    return short or _VOWEL.search(part) is not None


def column_count(boxes: Sequence[BBox], width: float) -> int:
    """How many columns of lines stand side by side over most of the page."""
    columns, gap, peak = 0, _MIN_GUTTER_POINTS, 0
    steps = [0] * (int(width) + 2)
    for box in boxes:
        steps[min(max(int(box.x0), 0), len(steps) - 1)] += 1
        steps[min(max(int(box.x1) + 1, 0), len(steps) - 1)] -= 1
    depths = list(accumulate(steps))
    few = max(1, _BRIDGING_SHARE * max(depths))
    for depth in [*depths, *[0] * _MIN_GUTTER_POINTS]:
        if depth > few:
            peak, gap = max(peak, depth), 0
            continue
        gap += 1
        if gap == _MIN_GUTTER_POINTS and peak:
            columns, peak = columns + (peak >= _COLUMN_ROWS), 0
    return max(1, columns)


def _ruled_lines(shapes: Sequence[Shape]) -> int:
    """Distinct places of rules: the edges of a grid count once, however it was drawn."""
    places: set[tuple[str, int]] = set()
    for shape in shapes:
        x0, y0, x1, y1 = shape.bbox
        if not shape.straight or max(x1 - x0, y1 - y0) < _MIN_RULE_POINTS:
            continue
        if y1 - y0 <= _THIN_POINTS:
            places.add(("y", round(y0)))
        elif x1 - x0 <= _THIN_POINTS:
            places.add(("x", round(x0)))
        elif shape.stroked:
            places |= {("y", round(y0)), ("y", round(y1)), ("x", round(x0)), ("x", round(x1))}
    return len(places)
