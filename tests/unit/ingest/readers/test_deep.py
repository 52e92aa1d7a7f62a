"""Deep nesting loses nothing, a title has an end, and text is not taken for an image."""

from __future__ import annotations

import pytest

from ingest.readers.base import title_or_name
from ingest.sniff import sniff
from ragplane.core.errors import StageError
from tests.unit.ingest.conftest import Read


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("<html><body>" + "".join(f"<div>part {i}" for i in range(300)) + "<p>the end", "a.html"),
        (">" * 40 + " deep\n\nthe end", "a.md"),
    ],
)
def test_deep_nesting_loses_nothing(content: str, name: str, read: Read) -> None:
    text = read(content.encode(), name).pages[0].text
    assert "the end" in text
    assert "deep" in text or "part 299" in text


def test_nesting_without_end_is_refused_by_name(read: Read) -> None:
    with pytest.raises(StageError, match="nested too deeply"):
        read(("<html><body>" + "<div>a" * 5000).encode(), "a.html")


def test_a_title_has_an_end() -> None:
    assert len(title_or_name("word " * 500, "a.md")) == 200


def test_text_that_starts_like_a_bitmap_is_text() -> None:
    assert sniff(b"BM25 is a ranking function.", "a.txt") == "text"
