"""Right-to-left text layers, with both engines: letters, ligatures, numbers in their order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ingest.parsed import ParsedDocument
from ingest.pdf.base import PdfEngine
from ingest.pdf.rtl import Glyph, united, whole_glyphs
from ragplane.core.schema import BBox
from tests.unit.ingest.arabic import SENTENCES, arabic, by_letters

MakePdf = Callable[..., bytes]
Read = Callable[..., ParsedDocument]


def words(document: ParsedDocument) -> list[str]:
    [page] = document.pages
    assert page.route == "text"
    return page.text.split()


@pytest.mark.parametrize("mapped", [bytes, by_letters], ids=["forms", "letters"])
def test_ligatures_are_read_in_the_order_of_their_letters(
    mapped: Callable[[bytes], bytes], make_pdf: MakePdf, read: Read
) -> None:
    """Behaviour 15: whether the layer has presentation forms, or two letters for one glyph."""
    lines = [line for line in SENTENCES if not any(map(str.isdigit, line))]
    assert words(read(mapped(make_pdf(arabic(*lines))))) == " ".join(lines).split()


@pytest.mark.parametrize("mapped", [bytes, by_letters], ids=["forms", "letters"])
def test_numbers_stay_left_to_right_where_they_stand(
    mapped: Callable[[bytes], bytes], make_pdf: MakePdf, read: Read, pdf_engine: PdfEngine
) -> None:
    """Behaviour 15."""
    found, wanted = words(read(mapped(make_pdf(arabic(*SENTENCES))))), " ".join(SENTENCES).split()
    if pdf_engine == "pdfium":  # gives no places for the spaces beside numbers
        assert sorted("".join(found)) == sorted("".join(wanted))
    else:
        assert found == wanted


def glyph(text: str, x0: float, x1: float) -> Glyph:
    return Glyph(text, BBox(x0, 0, x1, 12))


def test_letters_of_one_glyph_are_put_in_order() -> None:
    """Behaviour 15: the first letter has the width of the glyph, or both have it."""
    lam, alef, flat = glyph("ل", 20, 30), glyph("ا", 20, 30), glyph("ا", 30, 30)
    for before, after in ((flat, lam), (lam, flat), (alef, lam), (lam, alef)):
        one = united(before, after)
        assert one is not None
        assert (one.text, one.bbox) == ("لا", lam.bbox)


def test_letters_of_two_glyphs_and_of_other_scripts_stay_apart() -> None:
    assert united(glyph("ل", 20, 30), glyph("ا", 14, 20)) is None
    assert united(glyph("f", 20, 30), glyph("i", 20, 30)) is None


def test_marks_stay_with_their_letters() -> None:
    """Behaviour 15."""
    found = whole_glyphs([glyph("ب", 20, 30), glyph("\u064e", 30, 30), glyph("ا", 14, 20)])
    assert [one.text for one in found] == ["ب\u064e", "ا"]
