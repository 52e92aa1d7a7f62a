"""Sizes and visual tokens, against values worked out by hand."""

from __future__ import annotations

import pytest

from ingest.vlm.tokens import scaled_size, text_tokens, visual_tokens


@pytest.mark.parametrize(
    ("size", "max_pixels", "patch", "shown", "tokens"),
    [
        ((840, 1120), 2_000_000, 28, (840, 1120), 1200),  # 30 x 40 patches, as it is
        ((841, 1121), 2_000_000, 28, (868, 1148), 1271),  # a part of a patch is a whole one
        ((841, 1121), 2_000_000, 32, (864, 1152), 972),  # 27 x 36
        ((2480, 3508), 1_003_520, 28, (840, 1176), 1260),  # A4 at 300 dpi: 842 x 1191 is too much
        ((2480, 3508), 1_048_576, 32, (832, 1216), 988),  # 860.9 x 1217.8, rounded down
        ((10, 10), 2_000_000, 28, (28, 28), 1),
    ],
)
def test_a_page_is_counted_in_whole_patches(
    size: tuple[int, int], max_pixels: int, patch: int, shown: tuple[int, int], tokens: int
) -> None:
    """Behaviour 7."""
    found = scaled_size(*size, max_pixels, patch)
    assert found == shown
    assert found[0] * found[1] <= max_pixels
    assert visual_tokens(*found, patch) == tokens == found[0] * found[1] / patch**2


@pytest.mark.parametrize(("size", "tokens"), [((28, 28), 1), ((29, 28), 2), ((56, 57), 6)])
def test_tokens_of_sides_that_are_no_whole_patches(size: tuple[int, int], tokens: int) -> None:
    """Behaviour 7."""
    assert visual_tokens(*size, 28) == tokens


def test_a_prompt_is_estimated_on_the_dear_side() -> None:
    prompt = "Transcribe this page of a document, and write nothing else. " * 5
    assert text_tokens(prompt) > len(prompt.split()) * 1.4
    assert text_tokens(prompt) < len(prompt)
