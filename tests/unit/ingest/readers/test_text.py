"""Plain text files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ingest.parsed import ParsedDocument

Read = Callable[..., ParsedDocument]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_paragraphs_stand_between_empty_lines(line_end: str, read: Read) -> None:
    text = "one\ntwo\n\n\nthree\n \t\n\n  four  \n".replace("\n", line_end)
    document = read(text.encode(), "night-log.txt")
    [page] = document.pages
    assert [block.text for block in page.blocks] == ["one\ntwo", "three", "four"]
    assert {block.kind for block in page.blocks} == {"paragraph"}
    assert (document.title, document.mime) == ("night log", "text/plain")
    assert (page.number, page.route) == (1, "text")


def test_file_of_white_space_is_blank(read: Read) -> None:
    [page] = read(b" \n\t\n").pages
    assert (page.route, page.blocks) == ("blank", ())


def test_zero_bytes_far_into_a_file_are_left_out(read: Read) -> None:
    [page] = read(b"long line\n" * 2000 + b"end\x00 of file").pages
    assert page.text.endswith("end of file")


def test_file_name_in_no_encoding_gives_a_title_that_can_be_stored(read: Read) -> None:
    name = b"caf\xe9-menu.txt".decode("utf-8", "surrogateescape")
    assert read(b"text", name).title == "caf menu"
