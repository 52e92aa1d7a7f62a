"""Ruled lines of page images."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.ocr import Pixels
from ingest.ocr.rules import ruled_strokes
from ingest.ocr.upright import laid
from tests.unit.ingest.scans import Wear, worn

DPI = 150


def page_with_rules() -> Pixels:
    """A horizontal rule of 300 pixels, a vertical one of 200, and a block as thick as a letter."""
    image = np.full((600, 600, 3), 255, dtype=np.uint8)
    image[200:202, 100:400] = 0
    image[150:350, 300:302] = 90
    image[450:490, 100:140] = 0
    return image


@pytest.mark.parametrize("wear", [Wear(), Wear(blur_pixels=0.6, noise=12.0, jpeg_quality=55)])
def test_rules_are_found_and_nothing_else(wear: Wear) -> None:
    boxes = ruled_strokes(worn(page_with_rules(), wear), DPI)
    assert sorted(boxes) == [
        pytest.approx((100, 200, 400, 202), abs=3),
        pytest.approx((300, 150, 302, 350), abs=3),
    ]


def test_rules_of_a_skewed_page_are_those_of_the_page_made_straight() -> None:
    """Behaviour 11."""
    skewed = worn(page_with_rules(), Wear(skew_degrees=-2.0))  # anticlockwise by -2: it falls
    assert sorted(ruled_strokes(laid(skewed, 0, 2.0), DPI)) == [
        pytest.approx((100, 200, 400, 202), abs=4),
        pytest.approx((300, 150, 302, 350), abs=4),
    ]
    assert len(ruled_strokes(skewed, DPI)) < 2


def test_page_without_rules_has_none() -> None:
    assert ruled_strokes(np.full((40, 30, 3), 255, dtype=np.uint8), DPI) == []
