"""Pages without text, and pages whose text is not in their layer, labelled as `triage_pages`."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from textwrap import wrap
from typing import Any

import numpy as np
import pymupdf

from tests.unit.ingest.pages import paragraph
from tests.unit.ingest.scans import Wear, render, scanned_pdf, worn
from tests.unit.ingest.triage_pages import DPI, Draw, Make, PageKind, curves, drawn, lines, script


def changed(make: Make, change: Callable[[Any, Random], None]) -> Make:
    """The PDF after a change to its objects."""

    def make_changed(random: Random) -> bytes:
        with pymupdf.open(stream=make(random), filetype="pdf") as pdf:
            change(pdf, random)
            content: bytes = pdf.tobytes()
        return content

    return make_changed


def scan(*layers: Draw, quarter_turn: bool = False) -> Make:
    """A worn scan of a page of prose, with these drawn over it."""

    def make(random: Random) -> bytes:
        wear = Wear(random.uniform(-1.5, 1.5), 0.5, random.uniform(0, 12), 60)
        [image] = render(drawn(lines)(random), DPI)
        image = worn(np.rot90(image, random.choice((1, 3))) if quarter_turn else image, wear)
        with pymupdf.open(stream=scanned_pdf([image], DPI), filetype="pdf") as pdf:
            for draw in layers:
                draw(pdf[0], random)
            content: bytes = pdf.tobytes()
        return content

    return make


def layer(text: Callable[[Random], str]) -> Draw:
    """Invisible text over the image, as OCR programs write it."""

    def draw(page: Any, random: Random) -> None:
        for row, line in enumerate(wrap(text(random), 90)):
            page.insert_text((72, 80 + 14 * row), line, render_mode=3)

    return draw


def good_text(random: Random) -> str:
    """What a good recognition wrote."""
    return " ".join(paragraph(random, random.choice(("en", "de")), 5) for _ in range(4))


def junk_text(random: Random) -> str:
    """What a bad recognition wrote: a third of the letters are others."""
    noise = "~^|{}#;:lIi1!f<>xqzvw0"
    return "".join(
        random.choice(noise) if char.isalpha() and random.random() < 0.33 else char
        for char in good_text(random)
    )


def shifted(page: Any, random: Random) -> None:
    """Letters that stand for other letters: a wrong map to characters."""
    step = random.randint(1, 9)
    letters = [chr((ord(c) - 97 + step) % 26 + 97) if c.islower() else c for c in good_text(random)]
    for row, line in enumerate(wrap("".join(letters), 90)):
        page.insert_text((72, 80 + 14 * row), line)


def embedded(page: Any, random: Random) -> None:
    """Text in an embedded font, whose map to characters can be taken away."""
    page.insert_font("F0", fontbuffer=pymupdf.Font("helv").buffer)
    for row, line in enumerate(wrap(good_text(random), 90)):
        page.insert_text((72, 80 + 14 * row), line, fontname="F0")


def drop_map(pdf: Any, random: Random) -> None:
    """Leave the glyphs without characters."""
    _each_map(pdf, lambda number: pdf.xref_set_key(number, "ToUnicode", "null"))


def private_map(pdf: Any, random: Random) -> None:
    """Map every glyph into the private use area."""
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange "
        "<0000> <FFFF> endcodespacerange 1 beginbfrange <0001> <00FF> <E001> endbfrange "
        "endcmap end end"
    )

    def point(number: int) -> None:
        stream = pdf.get_new_xref()
        pdf.update_object(stream, "<<>>")
        pdf.update_stream(stream, cmap.encode())
        pdf.xref_set_key(number, "ToUnicode", f"{stream} 0 R")

    _each_map(pdf, point)


def _each_map(pdf: Any, change: Callable[[int], None]) -> None:
    for number in range(1, pdf.xref_length()):
        if "/ToUnicode" in pdf.xref_object(number):
            change(number)


def squared(page: Any, random: Random) -> None:
    """Paper to write on: rules only."""
    for place in range(60, 780, random.choice((12, 20, 30))):
        page.draw_line((60, place), (540, place), width=0.3)
        if place < 540:
            page.draw_line((place, 60), (place, 780), width=0.3)


def number(page: Any, random: Random) -> None:
    """A page number and nothing else."""
    page.insert_text((random.choice((80, 290, 500)), 800), str(random.randint(1, 400)))


def white(page: Any, random: Random) -> None:
    """Words that nobody can see."""
    page.insert_text((72, 300), paragraph(random, "en", 1), color=(1, 1, 1))


def stamp(page: Any, random: Random) -> None:
    """A number that an archive put on a scan, as text."""
    page.insert_text((430, 825), f"ARCHIVE {random.randint(100000, 999999)}", fontsize=8)


_ARABIC = script("وصلت السفينة إلى الميناء.", "أغلق الرصيف بسبب العاصفة عام 2031.")

UNREADABLE = (
    PageKind("scan with a good layer", "text", scan(layer(good_text))),
    PageKind("scan with a junk layer", "ocr", scan(layer(junk_text))),
    PageKind("scan", "ocr", scan()),
    PageKind("sideways scan", "ocr", scan(quarter_turn=True)),
    PageKind("scan with an archive's stamp", "ocr", scan(stamp)),
    PageKind("glyphs without characters", "ocr", changed(drawn(embedded), drop_map)),
    PageKind("private use glyphs", "ocr", changed(drawn(embedded), private_map)),
    PageKind("wrong map to characters", "ocr", drawn(shifted)),
    PageKind("letters as outlines", "ocr", drawn(curves)),
    PageKind("blank", "blank", drawn()),
    PageKind("page number only", "blank", drawn(number)),
    PageKind("squared paper", "blank", drawn(squared)),
    PageKind("text that cannot be seen", "blank", drawn(white)),
    # PyMuPDF loses the characters of joined letters.
    PageKind("joined letters without characters", "ocr", drawn(_ARABIC)),
)
