"""From raw lines to blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ingest.joining import join_lines
from ingest.layout import blocks_of_pages
from ingest.parsed import Line, RawPage, Table
from ragplane.core.errors import StageError
from ragplane.core.schema import BBox, Block, Note, PageSignals, Route

SIGNALS = PageSignals(0, 0, 0.0, 0.0, 0)
BODY = "This sentence is the body of the page and sets its usual size."


def line(
    text: str, y: float = 300, *, size: float = 10, bold: bool = False, mono: bool = False
) -> Line:
    box = BBox(72, y, 72 + 5 * len(text), y + size)
    return Line(text, box, size, bold=bold, monospaced=mono)


def raw_page(
    *lines: Line | Sequence[Line],
    number: int = 1,
    tables: Sequence[Table] = (),
    route: Route = "text",
) -> RawPage:
    """A page on which each argument is a paragraph."""
    return RawPage(
        number=number,
        width_points=600,
        height_points=800,
        rotation=0,
        route=route,
        reason="a test",
        signals=SIGNALS,
        seconds=0.0,
        paragraphs=tuple((part,) if isinstance(part, Line) else tuple(part) for part in lines),
        tables=tuple(tables),
    )


def blocks_of(*pages: RawPage) -> list[list[Block]]:
    return [list(page.blocks) for page in blocks_of_pages(pages)]


def texts_of(*pages: RawPage) -> list[list[str]]:
    return [[block.text for block in blocks] for blocks in blocks_of(*pages)]


# Furniture


def numbered_pages(count: int) -> list[RawPage]:
    return [
        raw_page(
            line("The Yearly Report", 20),
            line(f"{BODY} {'abc'[n % 3]}", 300),
            line(f"page {n} of {count}", 770),
            number=n,
        )
        for n in range(1, count + 1)
    ]


@pytest.mark.parametrize("count", [3, 7])
def test_heads_and_page_numbers_that_repeat_are_dropped(count: int) -> None:
    for texts in texts_of(*numbered_pages(count)):
        assert len(texts) == 1
        assert texts[0].startswith(BODY)


def test_nothing_is_furniture_on_two_pages() -> None:
    assert [len(texts) for texts in texts_of(*numbered_pages(2))] == [3, 3]


def test_heading_that_appears_once_at_the_top_is_kept() -> None:
    pages = numbered_pages(4)
    pages[2] = raw_page(line("Chapter Two", 20, size=16), line(BODY), number=3)
    assert texts_of(*pages)[2] == ["Chapter Two", BODY]


def test_line_that_repeats_in_the_middle_of_pages_is_kept() -> None:
    pages = [raw_page(line("Yes or no", 400), number=n) for n in range(1, 5)]
    assert texts_of(*pages) == [["Yes or no"]] * 4


# Lines of a paragraph


def joined(*texts: str, words: str = "") -> str:
    return join_lines([line(text) for text in texts], frozenset(words.split()))


@pytest.mark.parametrize(
    ("lines", "words", "text"),
    [
        (("one line", "and another"), "", "one line and another"),
        (("the tele-", "scope moves"), "telescope", "the telescope moves"),
        (("the tele-", "scope moves"), "", "the tele-scope moves"),
        (("a well-", "known fact"), "known", "a well-known fact"),
        (("part AB-", "12 fits"), "ab", "part AB-12 fits"),
        (("Anna Smith-", "Jones"), "smithjones", "Anna Smith-Jones"),
        (("from 3 -", "4 days"), "", "from 3 -4 days"),
        (("これは長い", "文です"), "", "これは長い文です"),
        (("これは", "ABC です"), "", "これは ABC です"),
    ],
)
def test_lines_join_with_hyphens_dropped_only_where_attested(
    lines: tuple[str, ...], words: str, text: str
) -> None:
    assert joined(*lines, words=words) == text


def test_attested_means_anywhere_in_the_document() -> None:
    broken = [line("Turn the tele-", 300), line("scope slowly.", 312)]
    elsewhere = raw_page(line("The Telescope is old."), number=2)
    assert texts_of(raw_page(broken), elsewhere)[0] == ["Turn the telescope slowly."]
    assert texts_of(raw_page(broken))[0] == ["Turn the tele-scope slowly."]


# Roles


def test_heading_levels_follow_the_sizes_and_bold_comes_last() -> None:
    [blocks] = blocks_of(
        raw_page(
            line("Title", size=24),
            line("Section", size=16),
            line("Part", bold=True),
            line(BODY),
            line("Another section", size=16),
            line("Warm and bold. Not a heading.", bold=True),
        )
    )
    assert [(block.kind, block.level) for block in blocks] == [
        ("heading", 1),
        ("heading", 2),
        ("heading", 3),
        ("paragraph", 0),
        ("heading", 2),
        ("paragraph", 0),
    ]


@pytest.mark.parametrize(
    "text",
    ["word " * 30, "42", "a clause that goes on,", "€ 17,81,841 crore", "1.250.000 Euro"],
    ids=["long", "number", "clause", "amount", "amount with dots"],
)
def test_large_text_that_is_no_heading(text: str) -> None:
    [blocks] = blocks_of(raw_page(line(text, size=20), line(BODY * 5)))
    assert blocks[0].kind == "paragraph"


@pytest.mark.parametrize("text", ["1.10 Costs", "2031 in figures", "ISO 27001", "3,5 Grad"])
def test_large_text_with_a_number_is_a_heading(text: str) -> None:
    [blocks] = blocks_of(raw_page(line(text, size=20), line(BODY * 5)))
    assert blocks[0].kind == "heading"


def test_text_that_runs_up_the_margin_is_no_heading_and_makes_no_level() -> None:
    """Behaviour 12."""
    margin = Line("doc:1234.5678 21 Jun", BBox(20, 200, 44, 500), 24)
    [blocks] = blocks_of(raw_page(line("Title", size=16), line(BODY * 5), margin))
    assert [(block.kind, block.level) for block in blocks] == [
        ("heading", 1),
        ("paragraph", 0),
        ("paragraph", 0),
    ]


def test_recognised_page_needs_a_larger_difference() -> None:
    lines = (line("Somewhat larger", size=12.5), line(BODY))
    [read], [recognised] = blocks_of(raw_page(*lines)), blocks_of(raw_page(*lines, route="ocr"))
    assert (read[0].kind, recognised[0].kind) == ("heading", "paragraph")


@pytest.mark.parametrize("mark", ["•", "-", "3.", "b)", "(12)"])
def test_list_items_are_told_by_their_mark(mark: str) -> None:
    [blocks] = blocks_of(raw_page(line(f"{mark} bring a lamp"), line(BODY)))
    assert (blocks[0].kind, blocks[0].text) == ("list_item", f"{mark} bring a lamp")


def test_code_keeps_its_lines() -> None:
    code = [line("if hot:", 300, mono=True), line("    open()", 312, mono=True)]
    [blocks] = blocks_of(raw_page(code))
    assert (blocks[0].kind, blocks[0].text) == ("code", "if hot:\n    open()")


def test_block_has_the_bounds_of_its_lines() -> None:
    [[block]] = blocks_of(raw_page([line("longer line", 300), line("short", 312)]))
    assert block.bbox == BBox(72, 300, 72 + 55, 322)


def test_levels_of_a_list_are_indents() -> None:
    """Behaviour 18."""
    marks = [("• one", 72), ("– two", 90), ("– three", 90.4), ("* four", 108), ("• five", 72)]
    lines = [
        Line(text, BBox(x, 100 + 14 * row, x + 30, 110 + 14 * row), 10)
        for row, (text, x) in enumerate(marks)
    ]
    [blocks] = blocks_of(raw_page(*lines, line(BODY, 400)))
    assert [block.text for block in blocks[:-1]] == [
        *("• one", "  – two", "  – three", "    * four", "• five")
    ]
    assert {block.kind for block in blocks[:-1]} == {"list_item"}


def test_items_in_one_paragraph_are_parted_and_keep_their_wrapped_lines() -> None:
    """Behaviour 18."""
    texts = [
        "1. Bring a lamp and",
        "a rope.",
        "2. Open the door in",
        "12. March or later.",
        "3. Go",
    ]
    [blocks] = blocks_of(raw_page([line(text, 100 + 14 * row) for row, text in enumerate(texts)]))
    assert [block.text for block in blocks] == [
        *("1. Bring a lamp and a rope.", "2. Open the door in", "12. March or later.", "3. Go")
    ]


def test_wrapped_line_that_begins_like_an_item_is_none() -> None:
    texts = ["The office will open again on", "12. March of that year, at ten", "- or so it says."]
    [blocks] = blocks_of(raw_page([line(text, 100 + 14 * row) for row, text in enumerate(texts)]))
    assert [block.text for block in blocks] == [" ".join(texts)]


def test_right_to_left_lines_and_ligatures_are_resolved_before_all_else() -> None:
    """Behaviour 15."""
    text = "שלום עולם, בשנת 2024 נמכרו ספרים."
    drawn = ".םירפס ורכמנ 2024 תנשב ,םלוע םולש"
    page = raw_page(
        [line("An e\ufb03cient tele-", 300), line("\ufb01eld.", 312)],
        line(drawn, 340),
        line("The tele\ufb01eld.", 370),
        tables=[table(500, ("東 京", "ﬁve"), ("a", "b"))],
    )
    assert texts_of(page)[0][:4] == [
        "An efficient telefield.",
        text,
        "The telefield.",
        "| 東京 | five |",
    ]


# Pages that came with more than lines


def test_page_with_its_own_blocks_keeps_them() -> None:
    """Behaviour 8."""
    own = (Block("heading", "Seen", level=1), Block("paragraph", "By a model."))
    pages = [replace(page, blocks=own if page.number == 2 else ()) for page in numbered_pages(4)]
    assert blocks_of_pages(pages)[1].blocks == own


def test_what_else_is_known_of_a_page_passes_through() -> None:
    """Behaviours 3 and 25."""
    error = StageError("ocr", "the engine died", page=2)
    notes = (Note("degraded", "over budget"),)
    first = replace(raw_page(line(BODY)), confidence=0.8, vlm_tokens=120, notes=notes)
    second = replace(raw_page(number=2, route="ocr"), error=error)
    one, two = blocks_of_pages([first, second])
    assert (one.confidence, one.vlm_tokens, one.notes, one.error) == (0.8, 120, notes, None)
    assert (two.error, two.blocks) == (error, ())


# Tables


HEADER, LAMP, DESK = "| Item | Price |", "| Lamp | 12 |", "| Desk | 80 |"


def table(y: float, *rows: tuple[str, str], x: float = 72) -> Table:
    return Table(BBox(x, y, x + 200, y + 20 * len(rows)), rows)


def rows_of(blocks: Sequence[Block]) -> list[tuple[str, str | None]]:
    """The rows below a header, each with that header."""
    rows = [block for block in blocks if block.kind == "table_row"]
    return [(row.text, row.header) for row in rows if row.text != row.header]


def test_first_row_is_the_header_of_the_others() -> None:
    [blocks] = blocks_of(raw_page(tables=[table(100, ("Item", "Price"), ("a|b", "1"))]))
    assert rows_of(blocks) == [("| a\\|b | 1 |", HEADER)]
    assert (blocks[0].text, blocks[0].header) == (HEADER, HEADER)


def test_row_of_numbers_heads_no_table() -> None:
    """Behaviour 13."""
    [blocks] = blocks_of(raw_page(tables=[table(100, ("1", "2.5"), ("3", "4"))]))
    assert [(block.text, block.header) for block in blocks] == [
        ("| 1 | 2.5 |", None),
        ("| 3 | 4 |", None),
    ]


def test_table_stands_between_the_text_above_and_below() -> None:
    page = raw_page(
        line("Above.", 100),
        line("Below.", 400),
        tables=[table(200, ("Item", "Price"), ("Lamp", "12"))],
    )
    assert texts_of(page) == [["Above.", HEADER, LAMP, "Below."]]


def test_table_stays_in_its_own_column() -> None:
    def at(text: str, x: float, y: float) -> Line:
        return Line(text, BBox(x, y, x + 200, y + 10), 10)

    page = raw_page(
        at("Left above.", 72, 100),
        at("Left below.", 72, 400),
        at("Right above.", 320, 110),
        at("Right below.", 320, 300),
        tables=[table(200, ("Item", "Price"), ("Lamp", "12"))],
    )
    assert texts_of(page) == [
        ["Left above.", HEADER, LAMP, "Left below.", "Right above.", "Right below."]
    ]


FIRST = table(600, ("Item", "Price"), ("Lamp", "12"))


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(raw_page(tables=[table(60, ("Desk", "80"))], number=2), id="alone"),
        pytest.param(
            raw_page(line(BODY, 300), tables=[table(60, ("Desk", "80"))], number=2),
            id="text below it",
        ),
        pytest.param(
            raw_page(tables=[table(60, ("Item", "Price"), ("Desk", "80"))], number=2),
            id="header repeated",
        ),
    ],
)
def test_table_over_a_page_break_keeps_the_header(second: RawPage) -> None:
    """Behaviour 13."""
    first, last = blocks_of(raw_page(line(BODY, 300), tables=[FIRST]), second)
    assert rows_of(first) == [(LAMP, HEADER)]
    assert rows_of(last) == [(DESK, HEADER)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            raw_page(tables=[FIRST]),
            raw_page(line(BODY, 20), tables=[table(60, ("A", "B"), ("1", "2"))], number=2),
            id="text above it",
        ),
        pytest.param(
            raw_page(line(BODY, 700), tables=[FIRST]),
            raw_page(tables=[table(60, ("A", "B"), ("1", "2"))], number=2),
            id="text after the first",
        ),
        pytest.param(
            raw_page(tables=[FIRST]),
            raw_page(tables=[table(60, ("A", "B"), ("1", "2"), x=200)], number=2),
            id="another place",
        ),
    ],
)
def test_new_table_has_its_own_header(first: RawPage, second: RawPage) -> None:
    assert rows_of(blocks_of(first, second)[1]) == [("| 1 | 2 |", "| A | B |")]


def test_page_between_ends_the_table() -> None:
    between = raw_page(line(BODY), number=2)
    new = raw_page(tables=[table(60, ("A", "B"), ("1", "2"))], number=3)
    assert rows_of(blocks_of(raw_page(tables=[FIRST]), between, new)[2]) == [
        ("| 1 | 2 |", "| A | B |")
    ]
