"""Right-to-left lines by the places of their glyphs, which no extractor can turn round.

Extractors turn runs of right-to-left letters by guess, and with them the letters of a ligature: its
glyph stands for two (lam-alef), which then come out backwards.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ingest.bidi import has_rtl, is_rtl, places_in_reading_order
from ingest.pdf.geometry import bounds
from ragplane.core.schema import BBox

_TOUCHING_POINTS = 0.1
_ALEFS = frozenset("اأإآ")


class Glyph(NamedTuple):
    """What one glyph stands for, from where to where it goes, and the span that it is of."""

    text: str
    bbox: BBox
    span: int = 0


def spans_in_reading_order(
    spans: Sequence[dict[str, Any]], *, is_level: bool
) -> list[dict[str, Any]]:
    """The spans of a line (PyMuPDF's `rawdict`) with their `text`.

    They are ordered and parted anew where the line is level and mostly right to left.
    """
    raw = [
        Glyph(char["c"], BBox(*char["bbox"]), number)
        for number, span in enumerate(spans)
        for char in span["chars"]
    ]
    glyphs = whole_glyphs(raw)
    if is_level and is_rtl("".join(glyph.text for glyph in glyphs)):
        glyphs.sort(key=lambda glyph: glyph.bbox.x0 + glyph.bbox.x1)
        # One sign for each: letters of a ligature behave alike.
        visual = "".join(glyph.text[:1] or " " for glyph in glyphs)
        glyphs = [glyphs[place] for place in places_in_reading_order(visual)]
    ordered: list[dict[str, Any]] = []
    for number, members in groupby(glyphs, key=lambda glyph: glyph.span):
        run = list(members)
        text = "".join(glyph.text for glyph in run)
        ordered.append({**spans[number], "text": text, "bbox": bounds(one.bbox for one in run)})
    return ordered


def whole_glyphs(glyphs: Sequence[Glyph]) -> list[Glyph]:
    """Right-to-left letters of one glyph put together in their order, marks to their letters."""
    whole: list[Glyph] = []
    for glyph in glyphs:
        last = whole[-1] if whole else None
        if last is None or last.span != glyph.span:
            whole.append(glyph)
        elif unicodedata.combining(glyph.text[:1] or " "):
            whole[-1] = last._replace(text=last.text + glyph.text)
        elif (one := united(last, glyph)) is not None:
            whole[-1] = one
        else:
            whole.append(glyph)
    return whole


def united(before: Glyph, after: Glyph) -> Glyph | None:
    """Two right-to-left letters of one glyph, in their order; None where they are of two.

    Either the first has the width and the other none; or both have it, and the order in which they
    come is not known: then lam stands before alef, which joins no letter after it.
    """
    (x0, _, x1, _), (other_x0, _, other_x1, _) = before.bbox, after.bbox
    if abs(x1 - other_x1) >= _TOUCHING_POINTS or not (has_rtl(before.text) and has_rtl(after.text)):
        return None
    width, other_width = x1 - x0, other_x1 - other_x0
    if min(width, other_width) >= _TOUCHING_POINTS and abs(x0 - other_x0) >= _TOUCHING_POINTS:
        return None
    is_turned = other_width > width + _TOUCHING_POINTS or before.text in _ALEFS
    first, second = (after, before) if is_turned else (before, after)
    return first._replace(text=first.text + second.text)
