"""OCR engines and a vision model of tests."""

from __future__ import annotations

from dataclasses import replace

from ingest.ocr import OcrLine, Pixels
from ingest.parsed import RawPage
from ragplane.core.schema import BBox, Block


class SidewaysEngine:
    """Reads well only an image that is wider than high."""

    def recognise(self, image: Pixels) -> list[OcrLine]:
        height, width = image.shape[:2]
        if height > width:
            return [OcrLine("sdewoys", BBox(10, 10, 40, height - 10), 0.6)]
        return [OcrLine("A line along the long side.", BBox(10, 10, width - 10, 40), 0.97)]


class Second:
    """A vision model that reads every page that it is shown, and remembers the images."""

    def __init__(self) -> None:
        self.images: list[Pixels] = []

    def improve(self, page: RawPage, image: Pixels) -> RawPage:
        self.images.append(image)
        return replace(page, route="vlm", blocks=(Block("paragraph", "read again"),))
