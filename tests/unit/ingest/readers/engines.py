"""OCR engines of tests."""

from __future__ import annotations

from ingest.ocr import OcrLine, Pixels
from ragplane.core.schema import BBox


class SidewaysEngine:
    """Reads well only an image that is wider than high."""

    def recognise(self, image: Pixels) -> list[OcrLine]:
        height, width = image.shape[:2]
        if height > width:
            return [OcrLine("sdewoys", BBox(10, 10, 40, height - 10), 0.6)]
        return [OcrLine("A line along the long side.", BBox(10, 10, width - 10, 40), 0.97)]
