"""Sentence borders."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragplane.core.sentences import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ("What?! No.", ["What?!", "No."]),
        ('She said "stop." Then left.', ['She said "stop."', "Then left."]),
        ("(It works.) So does this.", ["(It works.)", "So does this."]),
        ("Ask Dr. Low, e.g. Monday. Go.", ["Ask Dr. Low, e.g. Monday.", "Go."]),
        ("See Fig. 4 and No. 7. Done.", ["See Fig. 4 and No. 7.", "Done."]),
        ("It costs 3.50 now. Pay.", ["It costs 3.50 now.", "Pay."]),
        ("By J. R. Moor. Read it.", ["By J. R. Moor.", "Read it."]),
        ("1. Open the lid. 2. Close it.", ["1. Open the lid.", "2. Close it."]),
        ("2.1. Scope. All parts.", ["2.1. Scope.", "All parts."]),
        ("It was 1999. Then came rain.", ["It was 1999.", "Then came rain."]),
        ("approx. five. Six.", ["approx. five.", "Six."]),
        ("这是一。那是二！真的？是", ["这是一。", "那是二！", "真的？", "是"]),
        ("「はい。」と言った。次。", ["「はい。」", "と言った。", "次。"]),
        ("first line\nsecond line", ["first line", "second line"]),
        ("  padded.  \n\n  Next.  ", ["padded.", "Next."]),
        ("see www.example.org/a.b for more", ["see www.example.org/a.b for more"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_borders(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


@given(st.text(st.sampled_from("aZ9.!? \n\t。」)…e.g"), max_size=60) | st.text(max_size=60))
def test_every_visible_character_lies_in_exactly_one_trimmed_span(text: str) -> None:
    spans = sentence_spans(text)
    position = 0
    for start, end in spans:
        assert start >= position
        assert not text[position:start].strip()
        assert text[start:end] == text[start:end].strip() != ""
        position = end
    assert not text[position:].strip()


@pytest.mark.parametrize(
    "text",
    [
        "A short one. " * 40_000,
        "x" * 60_000 + " end. Next.",
        "." * 60_000 + "x",
        "A. " * 40_000,
    ],
    ids=["sentences", "long word", "dots", "initials"],
)
def test_long_text_takes_time_in_proportion(text: str) -> None:
    started = time.process_time()
    assert sentence_spans(text)
    assert time.process_time() - started < 5
