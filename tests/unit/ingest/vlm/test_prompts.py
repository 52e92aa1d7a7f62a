"""What the model is told."""

from __future__ import annotations

from ingest.vlm.answer import clean
from ingest.vlm.prompts import BLANK, INSTRUCTIONS, messages


def test_only_the_image_at_the_end_differs_from_page_to_page() -> None:
    one, other = messages("data:one"), messages("data:other")
    assert one[:-1] == other[:-1]
    assert one[-1]["content"][:-1] == other[-1]["content"][:-1]
    assert one[-1]["content"][-1] == {"type": "image_url", "image_url": {"url": "data:one"}}


def test_a_blank_page_is_answered_with_a_word_that_is_understood() -> None:
    """Behaviour 8."""
    assert BLANK in INSTRUCTIONS
    assert clean(BLANK) == ""
