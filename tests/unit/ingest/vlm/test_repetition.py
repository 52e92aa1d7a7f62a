"""Loops, found without knowing what they say."""

from __future__ import annotations

from ingest.vlm.repetition import Repetition, longest_loop, repeated_line


def test_a_phrase_over_and_over_is_a_loop() -> None:
    words = "we begin with one thing and then the end the end the end the end".split()
    assert longest_loop(words) == Repetition(("the", "end"), 4)


def test_the_longest_loop_is_told_by_its_shortest_phrase() -> None:
    words = ["x"] * 3 + "a b c".split() * 7
    assert longest_loop(words) == Repetition(("a", "b", "c"), 7)


def test_a_long_phrase_said_twice_is_a_loop_and_plain_text_is_none() -> None:
    phrase = [f"word{number}" for number in range(60)]
    found = longest_loop(["before", *phrase, *phrase, "after"])
    assert found is not None
    assert (sorted(found.words), found.times) == (sorted(phrase), 2)
    assert longest_loop(phrase) is None
    assert longest_loop([]) is None


def test_the_line_that_stands_there_most_often() -> None:
    lines = ["a b", "| | |", "a  b", "| | |", "| | |", "c"]
    assert repeated_line(lines) == Repetition(("a", "b"), 2)
    assert repeated_line(["", "---"]) is None
