"""Right-to-left lines in the order of reading."""

from __future__ import annotations

import pytest

from ingest.bidi import in_logical_order, is_rtl

HEBREW = "שלום עולם, בשנת 2024 נמכרו 1,250.50 ספרים (חדשים)."
ARABIC = "في عام 2024 بيعت الكتب في المكتبة (جديدة)."
MIXED = "הגרסה של Python 3.12 יצאה בשנת 2023."


def as_drawn(text: str) -> str:
    """The glyphs of a right-to-left line from left to right; each word in its own direction."""
    swapped = text.translate(str.maketrans("()", ")("))
    pieces: list[str] = []
    for word in reversed(swapped.split(" ")):
        core = word.strip("().,")
        before, _, after = word.partition(core)
        kept = core if core[:1].isascii() else core[::-1]
        pieces.append(after[::-1] + kept + before[::-1])
    return " ".join(pieces)


@pytest.mark.parametrize("text", [HEBREW, ARABIC])
def test_drawn_order_is_turned_and_numbers_stay(text: str) -> None:
    """Behaviour 15."""
    assert as_drawn(text) != text
    assert in_logical_order([as_drawn(text)]) == [text]


@pytest.mark.parametrize("text", [HEBREW, ARABIC, MIXED, "plain English (2024).", "日本語 2024"])
def test_logical_order_is_left_alone(text: str) -> None:
    """Behaviour 15."""
    assert in_logical_order([text]) == [text]


def test_latin_words_of_a_turned_line_keep_their_order() -> None:
    """Behaviour 15."""
    drawn = ".2023 תנשב האצי Python 3.12 לש הסרגה"
    assert in_logical_order([HEBREW, drawn])[1] == MIXED


def test_line_without_evidence_follows_the_document() -> None:
    """Behaviour 15."""
    unclear = "אבג דהו"
    assert in_logical_order([as_drawn(HEBREW), unclear[::-1]])[1] == unclear
    assert in_logical_order([HEBREW, unclear])[1] == unclear


def test_brackets_taken_by_their_shape_are_exchanged() -> None:
    """Behaviour 15."""
    assert in_logical_order(["נמכרו ספרים )חדשים( בשנה"]) == ["נמכרו ספרים (חדשים) בשנה"]


def test_ligature_taken_apart_backwards_is_mended_after_the_article() -> None:
    """Behaviour 15."""
    assert in_logical_order(["تحسين اإلنتاجية واألدوات"]) == ["تحسين الإنتاجية والأدوات"]


def test_direction_is_that_of_most_letters() -> None:
    assert is_rtl("שלום ABC")
    assert not is_rtl("the word שלום means peace")
    assert not is_rtl("2024")
