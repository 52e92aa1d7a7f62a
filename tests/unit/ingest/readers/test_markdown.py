"""Markdown files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ingest.parsed import ParsedDocument
from ragplane.core.schema import Block

Read = Callable[..., ParsedDocument]
Blocks = Callable[[str], list[Block]]


@pytest.fixture
def blocks(read: Read) -> Blocks:
    def of(text: str) -> list[Block]:
        [page] = read(text.encode(), "notes.md").pages
        return list(page.blocks)

    return of


def test_roles_and_order(blocks: Blocks) -> None:
    found = blocks(
        "# Set *up*\n\nOpen the\nbox, see [here](http://a/b).\n\n> quoted `code`\n\n"
        "```sh\nrun --fast\n\n# now\n```\n\nSecond\n------\n"
    )
    assert [(block.kind, block.level, block.text) for block in found] == [
        ("heading", 1, "Set up"),
        ("paragraph", 0, "Open the box, see here."),
        ("paragraph", 0, "quoted code"),
        ("code", 0, "run --fast\n\n# now"),
        ("heading", 2, "Second"),
    ]


def test_nested_lists_are_read_in_order(blocks: Blocks) -> None:
    found = blocks("1. one\n   - one a\n   - one b\n2. two\n\n   more of two\n")
    assert [(block.kind, block.text) for block in found] == [
        ("list_item", "1. one"),
        ("list_item", "  - one a"),
        ("list_item", "  - one b"),
        ("list_item", "2. two"),
        ("list_item", "   more of two"),
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_front_matter_is_a_paragraph_and_gives_the_title(line_end: str, read: Read) -> None:
    text = "---\ntitle: 'The Lamp'\ntags: [a]\n---\n# Part\n".replace("\n", line_end)
    document = read(text.encode(), "a.md")
    assert document.title == "The Lamp"
    assert [(block.kind, block.text) for block in document.pages[0].blocks] == [
        ("paragraph", "title: 'The Lamp'\ntags: [a]"),
        ("heading", "Part"),
    ]


def test_line_across_the_page_is_no_front_matter(read: Read) -> None:
    document = read(b"---\n\nOne\n\n# Two", "a.md")
    assert [block.text for block in document.pages[0].blocks] == ["One", "Two"]


def test_table_rows_carry_their_own_header(blocks: Blocks) -> None:
    found = blocks(
        "| Item | *Price* |\n|---|---|\n| a\\|b | 1 |\n| Desk |\n\nBetween.\n\n"
        "| A | B |\n|---|---|\n| 1 | 2 |\n"
    )
    assert [(block.text, block.header) for block in found] == [
        ("| Item | Price |", "| Item | Price |"),
        ("| a\\|b | 1 |", "| Item | Price |"),
        ("| Desk |  |", "| Item | Price |"),
        ("Between.", None),
        ("| A | B |", "| A | B |"),
        ("| 1 | 2 |", "| A | B |"),
    ]


def test_table_without_rows_is_kept(blocks: Blocks) -> None:
    [block] = blocks("| Item | Price |\n|---|---|\n")
    assert block.text == "| Item | Price |"


def test_text_of_images_is_kept_and_a_break_is_a_space(blocks: Blocks) -> None:
    [block] = blocks("See ![the old lamp](lamp.png)  \nhere&nbsp;&lt;now&gt;.")
    assert block.text == "See the old lamp here <now>."


def test_title_is_the_first_heading_or_the_name(read: Read) -> None:
    assert read(b"text\n\n## Part\n\n# Later", "notes.md").title == "Part"
    assert read(b"text", "lab-notes_2.md").title == "lab notes 2"
    assert read(b"text", "notes.md").mime == "text/markdown"


@pytest.mark.parametrize("text", [" \n", "---\n", "[a]: http://b/c\n"])
def test_file_without_text_is_blank(text: str, read: Read) -> None:
    [page] = read(text.encode(), "a.md").pages
    assert (page.route, page.blocks) == ("blank", ())


def test_numeric_references_give_text_that_can_be_stored(blocks: Blocks) -> None:
    [block] = blocks("caf&eacute; &#xD800; &#0; end")
    assert block.text.encode("utf-8")
    assert "\x00" not in block.text
    assert block.text.startswith("café")
