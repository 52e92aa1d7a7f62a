"""Running heads and feet on pages with known text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest

from ingest.layout import blocks_of_pages
from ingest.parsed import Line, RawPage
from ragplane.core.schema import BBox, PageSignals

SIGNALS = PageSignals(0, 0, 0.0, 0.0, 0)
WORDS = (
    "anchor basin cargo dredge east ferry gauge harbour inlet jetty keel ledger mast north oar "
    "pilot quay rope sail tide under vessel wharf yard zone the of and 12 7 2024"
).split()
MARK = "§"  # stands in every line of the body and nowhere else
CHAPTERS = ("Lamps", "Tall desks", "Chairs")


def line(
    text: str, y: float, *, x: float = 72, size: float = 10, confidence: float | None = None
) -> Line:
    return Line(text, BBox(x, y, x + 5 * len(text), y + size), size, confidence=confidence)


def page(number: int, *lines: Line) -> RawPage:
    random = Random(number)
    body = [
        line(f"{' '.join(random.choices(WORDS, k=9))} {MARK} {random.choice(WORDS)}", 62.0 + 14 * y)
        for y in range(49)
    ]
    return RawPage(
        *(number, 600, 800, 0, "text", "a test", SIGNALS, 0.0),
        tuple((one,) for one in (*lines, *body)),
    )


def kept(pages: Sequence[RawPage]) -> list[str]:
    """The texts of all pages that are not the body's."""
    return [
        block.text
        for one in blocks_of_pages(pages)
        for block in one.blocks
        if MARK not in block.text
    ]


def chapter(number: int) -> str:
    return CHAPTERS[(number - 1) // 8]


ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
HEADS: dict[str, Callable[[int], str]] = {
    "the same on every page": lambda n: "The Yearly Report",
    "page numbers": lambda n: f"- {n} -",
    "page numbers from another start": lambda n: f"Page {n + 11} of 40",
    "Roman numbers": lambda n: ROMAN[(n - 1) % 10] if n <= 10 else str(n - 10),
    "alternating sides": lambda n: f"{n} Yearly Report" if n % 2 else f"{chapter(n)} {n}",
    "a chapter's name in part": lambda n: f"The Yearly Report: {chapter(n)}",
    "the chapter's name alone": chapter,
    "chapter and number": lambda n: f"{chapter(n)} | {n}",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("y", [30, 770])
def test_what_repeats_in_a_margin_is_left_out(head: Callable[[int], str], y: float) -> None:
    """Behaviour 12."""
    pages = [page(n, line(head(n), y, x=72 if n % 2 else 400)) for n in range(1, 25)]
    assert kept(pages) == []


def test_misread_head_is_left_out_with_the_others() -> None:
    """Behaviour 12."""
    texts = ["The Yearly Report 2024", "The Yeariy Report 2024", "The Yearly Rep0rt 2024"]
    pages = [page(n, line(texts[max(0, n - 8)], 30, confidence=0.9)) for n in range(1, 11)]
    assert kept(pages) == []


def test_headings_at_the_top_of_pages_are_kept() -> None:
    """Behaviour 12."""
    titles = [f"Chapter {n}" if n % 2 else f"{n} Notes on chairs" for n in range(1, 9)]
    pages = [page(n, line(titles[n - 1], 44, size=16), line("Report", 30)) for n in range(1, 9)]
    assert kept(pages) == titles


@pytest.mark.parametrize("y", [30, 45, 770])
def test_line_that_stands_once_is_kept(y: float) -> None:
    """Behaviour 12."""
    pages = [page(n) for n in range(1, 13)]
    pages[4] = page(5, line("Signed in March by the whole board", y))
    assert kept(pages) == ["Signed in March by the whole board"]


def test_title_shared_by_a_few_slides_is_kept() -> None:
    """Behaviour 12."""
    pages = [page(n, line("Results", 40, size=20)) for n in range(1, 4)]
    pages += [page(n) for n in range(4, 16)]
    assert kept(pages) == ["Results"] * 3


def test_body_in_the_margins_is_kept() -> None:
    """Behaviour 12."""
    pages = [page(n) for n in range(1, 30)]
    assert sum(len(one.blocks) for one in blocks_of_pages(pages)) == 29 * 49
