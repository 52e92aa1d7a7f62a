"""The characters of a page through pdfium, gathered into words, spans and lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pypdfium2.raw as pdfium_c

from ingest.pdf.base import UNMAPPED, PdfError, TextLine, TextSpan
from ingest.pdf.geometry import Matrix, bounds, holding, transformed
from ingest.pdf.pdfium_objects import PageObjects, TextFacts, address
from ingest.pdf.rtl import Glyph, united
from ingest.tables import Word
from ragplane.core.schema import BBox

_LINE_ENDS = ("\r", "\n")
_HYPHEN_AT_LINE_END = 2  # how pdfium marks it
_WIDE_GAP = 1.5  # of the font size: more than between words, less than between columns
_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}


class Character(NamedTuple):
    """A character with what its text object says; spaces that pdfium made up have no object."""

    text: str
    bbox: BBox
    facts: TextFacts | None
    covered: str


def page_characters(page: Any, to_shown: Matrix, objects: PageObjects) -> list[Character]:
    """The characters of the page in the order of the file. Raises PdfError."""
    text_page = pdfium_c.FPDFText_LoadPage(page)
    if not text_page:
        raise PdfError("the text of the page cannot be read")
    try:
        count = max(0, pdfium_c.FPDFText_CountChars(text_page))
        raw = [_character(text_page, index, to_shown, objects) for index in range(count)]
    finally:
        pdfium_c.FPDFText_ClosePage(text_page)
    return _with_covers(_with_whole_ligatures(raw), objects)


def _character(text_page: Any, index: int, to_shown: Matrix, objects: PageObjects) -> Character:
    facts = objects.texts.get(address(pdfium_c.FPDFText_GetTextObject(text_page, index)))
    code = pdfium_c.FPDFText_GetUnicode(text_page, index)
    if facts is None or pdfium_c.FPDFText_IsGenerated(text_page, index) == 1:
        return Character(chr(code) if code else "", BBox(0, 0, 0, 0), None, "")
    text = _LIGATURES.get(code) or _mapped(code)
    if pdfium_c.FPDFText_HasUnicodeMapError(text_page, index) == 1:
        text = UNMAPPED
    rect = pdfium_c.FS_RECTF()
    pdfium_c.FPDFText_GetLooseCharBox(text_page, index, rect)
    box = transformed((rect.left, rect.bottom, rect.right, rect.top), to_shown)
    return Character(text, box, facts, "")


def _with_whole_ligatures(characters: Sequence[Character]) -> list[Character]:
    whole: list[Character] = []
    for character in characters:
        last = whole[-1] if whole else None
        one = None
        if last and last.facts and character.facts and not character.text.isascii():
            one = united(Glyph(last.text, last.bbox), Glyph(character.text, character.bbox))
        if last and one:
            whole[-1] = last._replace(text=one.text)
        else:
            whole.append(character)
    return whole


def _mapped(code: int) -> str:
    if code == _HYPHEN_AT_LINE_END:
        return "-"
    return UNMAPPED if code == 0 or 0xD800 <= code <= 0xDFFF else chr(code)


def _with_covers(characters: list[Character], objects: PageObjects) -> list[Character]:
    """The characters, those marked over which an image or a filled rectangle was painted later."""
    fills = [
        (order, shape.bbox, "shape")
        for order, shape in zip(objects.shape_orders, objects.shapes, strict=True)
        if shape.straight and shape.opaque and not shape.stroked
    ]
    images = zip(objects.image_orders, objects.images, ["image"] * len(objects.images), strict=True)
    covers = sorted([*fills, *images])
    placed = [index for index, character in enumerate(characters) if character.facts]
    if not covers or not placed:
        return characters
    inside = holding([box for _, box, _ in covers], [characters[index].bbox for index in placed])
    last = np.where(inside, np.arange(len(covers)), -1).max(axis=1)
    for index, cover in zip(placed, last, strict=True):
        character = characters[index]
        if cover >= 0 and character.facts and covers[cover][0] > character.facts.order:
            characters[index] = character._replace(covered=covers[cover][2])
    return characters


def words_of(characters: Sequence[Character]) -> list[Word]:
    """Words with their boxes."""
    words: list[list[Character]] = [[]]
    for character in characters:
        if character.facts is None or character.text.isspace():
            words.append([])
            continue
        if words[-1] and _is_far(words[-1][-1], character):
            words.append([])
        words[-1].append(character)
    return [
        Word("".join(char.text for char in word), bounds(char.bbox for char in word))
        for word in words
        if word
    ]


def text_lines(characters: Sequence[Character]) -> list[TextLine]:
    """Lines of spans; a line ends where pdfium says so, at a wide gap, and where text turns."""
    groups: list[list[Character]] = [[]]
    for character in characters:
        if character.facts is None and character.text in _LINE_ENDS:
            groups.append([])
            continue
        last = next((char for char in reversed(groups[-1]) if char.facts), None)
        if last and character.facts and _is_far(last, character):
            groups.append([])
        groups[-1].append(character)
    lines: list[TextLine] = []
    for group in groups:
        spans = _spans(group)
        if not spans:
            continue
        facts = next(char.facts for char in group if char.facts)
        lines.append(TextLine(spans, bounds(span.bbox for span in spans), facts.direction))
    return lines


def _is_far(last: Character, character: Character) -> bool:
    """Whether a character does not go on with the last one's line."""
    if last.facts is None or character.facts is None:
        return False
    if last.facts.direction != character.facts.direction:
        return True
    size = max(last.facts.size_points, character.facts.size_points)
    upright = last.facts.direction in (0, 180)
    if upright:
        gap = max(character.bbox.x0 - last.bbox.x1, last.bbox.x0 - character.bbox.x1)
    else:
        gap = max(character.bbox.y0 - last.bbox.y1, last.bbox.y0 - character.bbox.y1)
    return gap > _WIDE_GAP * size


def _spans(characters: Sequence[Character]) -> list[TextSpan]:
    spans: list[tuple[TextFacts, str, list[Character]]] = []
    for character in characters:
        facts = character.facts
        if facts is None:
            if spans:
                spans[-1][2].append(character)
        elif spans and spans[-1][0] is facts and spans[-1][1] == character.covered:
            spans[-1][2].append(character)
        else:
            spans.append((facts, character.covered, [character]))
    return [_span(facts, covered, chars) for facts, covered, chars in spans]


def _span(facts: TextFacts, covered: str, characters: Sequence[Character]) -> TextSpan:
    return TextSpan(
        "".join(character.text for character in characters),
        bounds(character.bbox for character in characters if character.facts),
        facts.font,
        facts.size_points,
        facts.bold,
        facts.monospaced,
        facts.colour,
        facts.painted,
        "image" if covered == "image" else "shape" if covered == "shape" else "",
    )
