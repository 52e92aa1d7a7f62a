"""The ruled lines of a page image, by morphological opening (Serra 1982)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ingest.ocr.base import Pixels
from ragplane.core.schema import BBox

_MIN_INCHES = 0.35  # taller than the letters of a title
_MAX_THICKNESS_INCHES = 0.04
_WINDOW_INCHES = 0.15  # the neighbourhood that ink is darker than
_CONTRAST = 12


def ruled_strokes(image: Pixels, dpi: float) -> list[BBox]:
    """Straight strokes along the sides of an upright page, in pixels."""
    import cv2

    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    window = 2 * round(_WINDOW_INCHES * dpi / 2) + 1
    ink = cv2.adaptiveThreshold(
        grey, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, max(3, window), _CONTRAST
    )
    length = max(3, round(_MIN_INCHES * dpi))
    thickness = max(3.0, _MAX_THICKNESS_INCHES * dpi)
    return [
        box
        for shape in ((1, length), (length, 1))
        for box in _boxes(cv2.morphologyEx(ink, cv2.MORPH_OPEN, np.ones(shape, np.uint8)))
        if min(box.x1 - box.x0, box.y1 - box.y0) <= thickness
    ]


def _boxes(mask: Any) -> list[BBox]:
    import cv2

    _, _, found, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    return [
        BBox(float(x), float(y), float(x + width), float(y + height))
        for x, y, width, height, _ in found[1:]  # the first is the background
    ]
