"""Pages for the tests of the vision route: OCR lines, and images with ink in known places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingest.ocr import Pixels
from ingest.parsed import Line, RawPage
from ragplane.core.schema import BBox, PageSignals

HEIGHT_PIXELS, WIDTH_PIXELS = 1100, 850
DPI = 100

TEXTS = (
    "Harbour dues for the year 2024",
    "Vessels over 40 metres pay 1,250.50 a day",
    "Pilotage from the outer buoy costs 318 and",
    "waste is collected every morning for 42.75",
)
ANSWER = """# Harbour dues for the year 2024

Vessels over 40 metres pay 1,250.50 a day

Pilotage from the outer buoy costs 318 and waste is collected every morning for 42.75
"""


def lines_of(texts: Sequence[str] = TEXTS, confidence: float | None = 0.98) -> list[Line]:
    """Lines of 12 points, one below the other, 24 points apart."""
    return [
        Line(text, BBox(72, 72 + 24 * row, 400, 84 + 24 * row), 12.0, confidence=confidence)
        for row, text in enumerate(texts)
    ]


def white_page() -> Pixels:
    return np.full((HEIGHT_PIXELS, WIDTH_PIXELS, 3), 255, dtype=np.uint8)


def inked_page(lines: Sequence[Line]) -> Pixels:
    """A page with stripes of ink where the lines stand."""
    page = white_page()
    for line in lines:
        x0, y0, x1, y1 = (round(edge * DPI / 72) for edge in line.bbox)
        page[y0:y1, x0:x1:4] = 0
    return page


def ocr_page(lines: Sequence[Line], number: int = 1) -> RawPage:
    return RawPage(
        number=number,
        width_points=WIDTH_PIXELS * 72 / DPI,
        height_points=HEIGHT_PIXELS * 72 / DPI,
        rotation=0,
        route="ocr",
        reason="an image and no text layer",
        signals=PageSignals(0, 0, 0.0, 1.0, 0),
        seconds=1.0,
        paragraphs=(tuple(lines),),
        confidence=0.5,
    )
