"""What is measured on a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymupdf
import pytest

from ingest.parsed import ParsedDocument
from ingest.pdf.base import PageContent, PdfEngine, Shape
from ingest.pdf.geometry import coverage
from ingest.pdf.signals import column_count, measure, unmapped_share, word_likeness
from ragplane.core.schema import BBox
from tests.unit.ingest.pdf.conftest import picture, printed
from tests.unit.ingest.pdf.test_broken import hand_written_pdf

MakePdf = Callable[..., bytes]
Read = Callable[..., ParsedDocument]
PAGE = BBox(0, 0, 600, 800)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0.0),
        (" \n", 0.0),
        ("plain text, naïve 日本", 0.0),
        ("ab\ufffd\ufffd", 0.5),
        ("\ue000\ue001 \U000f0001", 1.0),  # private use
        ("a\x02b\x9f", 0.5),  # controls
        ("(cid:12)(cid:7) abcdefg", 0.6818),  # glyph numbers that a producer wrote out
    ],
)
def test_unmapped_share_counts_characters_that_stand_for_none(text: str, share: float) -> None:
    """Behaviour 2."""
    assert unmapped_share(text) == pytest.approx(share, abs=1e-4)


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox doesn't jump over the lazy dog (see p. 12), e.g. in 1984.",
        "Die Rechtschreibung wurde 1996 geändert; Schifffahrt schreibt man mit drei f.",
        "L'été dernier, nous sommes allés à la plage près d'Aix-en-Provence.",
        "Wszystkie Chrząszcze Brzmią W Trzcinie, mówi stare przysłowie.",
        "NASA and HTTP are acronyms; ISO-9001 and RFC2616 are codes, so are H2O and r0c1.",
        "Быстрая коричневая лиса прыгает через ленивую собаку",
        "素早い茶色の狐が怠け者の犬を飛び越える",
        "وصلت الحافلة إلى المدينة في الصباح الباكر",
        "See https://example.org/a?b=c or write to someone@example.org.",
        "1,234.50 12.7 % 88/99 -3 +4 € 12 2021-03-04",
    ],
)
def test_texts_of_many_languages_look_like_words(text: str) -> None:
    """Behaviour 2."""
    assert word_likeness(text.split()) >= 0.9


@pytest.mark.parametrize(
    "text",
    [
        "Wkh txlfn eurzq ira mxpsv ryhu wkh odcb grj ehvlgh wkh ulyhu",  # shifted letters
        "tlc qu1ck hr0wn f<x jvmps 0v~r tbc l4zy d|g b#s1de",
        "\ufffd\ufffd\ufffd a\ufffdb \ue001\ue002 x\ufffdyz",
        "iiilllii jjjtttll ;:,.~' ^^..,: lllliii",
        "aBcDe fGhIj kLmNo pQrSt",
    ],
)
def test_junk_does_not_look_like_words(text: str) -> None:
    """Behaviour 2."""
    assert word_likeness(text.split()) <= 0.5


def test_coverage_counts_overlaps_once() -> None:
    half = BBox(0, 0, 600, 400)
    assert coverage([half, half], PAGE) == pytest.approx(0.5, abs=0.01)
    assert coverage([half, BBox(0, 400, 600, 900)], PAGE) == pytest.approx(1)
    assert coverage([BBox(10, 10, 12, 12)], PAGE) == pytest.approx(4 / 480_000)
    assert coverage([], PAGE) == 0


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_columns_are_counted_under_a_heading_over_all(columns: int) -> None:
    """Behaviour 2."""
    width = 500 / columns
    boxes = [
        BBox(50 + width * column, 100 + 12 * row, 50 + width * (column + 1) - 15, 110 + 12 * row)
        for column in range(columns)
        for row in range(40)
    ]
    assert column_count([BBox(50, 50, 550, 70), *boxes], 600) == columns


def test_no_lines_are_one_column() -> None:
    assert column_count([], 600) == 1


# Through both engines


def test_signals_of_a_page_with_everything(make_pdf: MakePdf, read: Read) -> None:
    """Behaviour 2."""

    def draw(page: Any) -> None:
        page.insert_text((72, 100), "Seven words stand on this short page.")
        for y in (150, 170, 190):
            page.draw_line((72, y), (300, y))
        page.draw_rect((72, 300, 172, 400))
        page.draw_circle((300, 350), 20)
        picture((0, 421, 595, 842), printed(200, 200))(page)
        page.set_rotation(180)

    signals = read(make_pdf(draw)).pages[0].signals
    assert (signals.characters, signals.words) == (31, 7)
    assert (signals.drawings, signals.ruled_lines) in {(5, 7), (8, 7)}
    assert signals.image_coverage == pytest.approx(0.5, abs=0.01)
    assert signals.rotation == 180
    assert signals.word_likeness == 1
    assert (signals.invisible_characters, signals.unmapped_share, signals.columns) == (0, 0, 1)


def font_without_map() -> bytes:
    """A page with one line in a font of glyph numbers only, and one in Helvetica."""
    with pymupdf.open() as document:
        page = document.new_page()
        font = pymupdf.Font("helv")
        page.insert_font("F0", fontbuffer=font.buffer)
        page.insert_text((72, 100), "Nobody can say what these letters are.", fontname="F0")
        page.insert_text((72, 200), "A short line.")
        for number in range(1, document.xref_length()):
            if "/ToUnicode" in document.xref_object(number):
                document.xref_set_key(number, "ToUnicode", "null")
        content: bytes = document.tobytes()
    return content


def test_font_that_maps_to_no_characters_is_measured_and_recognised(read: Read) -> None:
    """Behaviours 2 and 4."""
    [page] = read(font_without_map()).pages
    assert page.signals.unmapped_font_share == pytest.approx(32 / 43, abs=0.05)
    assert page.route == "ocr"


@pytest.mark.parametrize("code", ["FFFD", "E000"])
def test_few_unmapped_characters_are_no_reason_to_recognise(
    code: str, read: Read, pdf_engine: PdfEngine
) -> None:
    """Behaviour 4."""
    [page] = read(hand_written_pdf(f"<42> <{code}>", "()")).pages
    # PDFium keeps the font's own letter where the map leads nowhere.
    assert page.signals.unmapped_share == pytest.approx(1 / 12 if pdf_engine == "mupdf" else 0)
    assert page.route == "text"


def test_grid_drawn_as_cells_has_the_rules_of_one_drawn_as_lines() -> None:
    cells = [
        Shape(BBox(50 * c, 20 * r, 50 * c + 50, 20 * r + 20), True, True, 0)
        for c in range(3)
        for r in range(4)
    ]
    lines = [Shape(BBox(50 * c, 0, 50 * c, 80), True, True, 0) for c in range(4)]
    lines += [Shape(BBox(0, 20 * r, 150, 20 * r), True, True, 0) for r in range(5)]
    for shapes in (cells, lines):
        signals = measure(PageContent([], shapes, []), 600, 800, 0)
        assert signals.ruled_lines == 9
