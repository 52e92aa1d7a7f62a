"""Scanned regions of pages that also have text: found, recognised alone, freed of duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ingest.ocr import Pixels
from ingest.parsed import Line
from ingest.pdf.base import TextLine
from ingest.pdf.geometry import area, holds_centre, intersection
from ragplane.core.schema import BBox

_MIN_SIDE_POINTS = 24.0
_MAX_TEXT_SHARE = 0.1  # of the image may lie under text of the page; more is a background
_PAPER_STEPS = 24  # brightness steps from the paper's, within which a pixel is paper
_INK_STEPS = 80
_MIN_PAPER_SHARE = 0.5
_INK_SHARES = (0.004, 0.4)


def scanned_regions(
    images: Sequence[BBox], lines: Sequence[TextLine], page: BBox, min_coverage: float
) -> list[BBox]:
    """The parts of the page under images that are large enough and free of the page's own text.

    Of images that lie over each other the largest is taken.
    """
    regions: list[BBox] = []
    for image in sorted((intersection(image, page) for image in images), key=area, reverse=True):
        small = min(image.x1 - image.x0, image.y1 - image.y0) < _MIN_SIDE_POINTS
        if small or area(image) < min_coverage * area(page):
            continue
        written = sum(area(intersection(line.bbox, image)) for line in lines)
        apart = all(area(intersection(image, other)) == 0 for other in regions)
        if apart and written <= _MAX_TEXT_SHARE * area(image):
            regions.append(image)
    return regions


def may_hold_text(image: Pixels) -> bool:
    """Whether an image is mostly paper of one brightness with some ink on it, not a photograph."""
    grey = image.astype(np.int16).mean(axis=2)
    if not grey.size:
        return False
    paper = np.median(grey)
    distance = np.abs(grey - paper)
    ink = float((distance >= _INK_STEPS).mean())
    plain = float((distance <= _PAPER_STEPS).mean())
    return plain >= _MIN_PAPER_SHARE and _INK_SHARES[0] <= ink <= _INK_SHARES[1]


def new_lines(found: Sequence[Line], region: BBox, lines: Sequence[TextLine]) -> list[Line]:
    """Recognised lines moved to the region's place, without those that the page has as text."""
    moved = (_moved(line, region) for line in found)
    return [line for line in moved if not _is_among(line, lines)]


def _moved(line: Line, region: BBox) -> Line:
    x0, y0, x1, y1 = line.bbox
    box = BBox(x0 + region.x0, y0 + region.y0, x1 + region.x0, y1 + region.y0)
    return replace(line, bbox=box)


def _is_among(line: Line, lines: Sequence[TextLine]) -> bool:
    return any(
        holds_centre(other.bbox, line.bbox) or holds_centre(line.bbox, other.bbox)
        for other in lines
    )
