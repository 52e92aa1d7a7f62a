"""Listings keep their shape."""

from __future__ import annotations

from ingest.code import code_text, with_code_joined
from ingest.parsed import Line
from ragplane.core.schema import BBox

SOURCE = "def hot(x):\n    if x > 30:\n        return True\n\n    return False"


def lines_of(source: str, top: float = 100, *, spaces: bool = False) -> list[Line]:
    """One line for each that is not blank; `spaces` leaves the indentation in the text."""
    lines = []
    for row, text in enumerate(source.split("\n")):
        shown = text if spaces else text.lstrip()
        x, y = 72 + 6 * (len(text) - len(shown)), top + 12 * row
        if shown:
            box = BBox(x, y, x + 6 * len(shown), y + 10)
            lines.append(Line(shown, box, 10, monospaced=True))
    return lines


def test_indentation_and_blank_lines_are_those_of_the_page() -> None:
    """Behaviour 18."""
    assert code_text(lines_of(SOURCE)) == SOURCE
    assert code_text(lines_of(SOURCE, spaces=True)) == SOURCE


def test_code_parted_by_a_blank_line_is_one_listing() -> None:
    """Behaviour 18."""
    lines = lines_of(SOURCE)
    assert with_code_joined([lines[:3], lines[3:]]) == [lines]
    assert code_text(with_code_joined([lines[:3], lines[3:]])[0]) == SOURCE


def test_code_further_off_and_prose_are_apart() -> None:
    first, second = lines_of("a = 1"), lines_of("b = 2", top=200)
    prose = [Line("Prose.", BBox(72, 112, 100, 122), 10)]
    assert with_code_joined([first, second]) == [first, second]
    assert with_code_joined([first, prose, lines_of("b", top=124)])[1] == prose
