"""Makers of small PDF files, and a reader of them over both engines."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pymupdf
import pytest
from PIL import Image

from ingest.ocr import OcrEngine
from ingest.parsed import ParsedDocument
from ingest.pdf.base import PdfEngine
from ingest.readers.base import ReadContext
from ingest.readers.pdf import read_pdf
from ingest.triage import Thresholds

Draw = Callable[[Any], None]
A4 = (595.0, 842.0)


@pytest.fixture(params=get_args(PdfEngine))
def pdf_engine(request: pytest.FixtureRequest) -> PdfEngine:
    """Every test that takes it runs once with each engine."""
    engine: PdfEngine = request.param
    return engine


@pytest.fixture
def read(ocr: Any, pdf_engine: PdfEngine) -> Callable[..., ParsedDocument]:
    """Reads a PDF with each engine."""

    def read_bytes(content: bytes, name: str = "a.pdf", **changes: Any) -> ParsedDocument:
        engine: OcrEngine = changes.pop("engine", ocr)
        thresholds = changes.pop("thresholds", Thresholds())
        context = ReadContext(name, engine, thresholds, pdf_engine=pdf_engine, **changes)
        return read_pdf(content, context)

    return read_bytes


@pytest.fixture
def make_pdf() -> Callable[..., bytes]:
    """A PDF of one page for each function given, which draws on it."""

    def make(*draws: Draw, size: tuple[float, float] = A4, **saving: Any) -> bytes:
        with pymupdf.open() as document:
            for draw in draws:
                draw(document.new_page(width=size[0], height=size[1]))
            content: bytes = document.tobytes(**saving)
        return content

    return make


@pytest.fixture
def text() -> Callable[..., Draw]:
    """Draws one line."""

    def at(text: str, x: float = 72, y: float = 100, **style: Any) -> Draw:
        return lambda page: page.insert_text((x, y), text, **style)

    return at


@pytest.fixture
def scan() -> Draw:
    """Covers the page with a grey image."""
    grey = np.full((80, 60, 3), 200, np.uint8)
    return lambda page: picture(tuple(page.rect), grey)(page)


def picture(box: tuple[float, float, float, float], pixels: Any) -> Draw:
    """Draws an image that fills the box."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return lambda page: page.insert_image(box, stream=buffer.getvalue(), keep_proportion=False)


def printed(width: int, height: int) -> Any:
    """An image that looks like print: dark strokes in rows on white paper."""
    pixels = np.full((height, width, 3), 255, np.uint8)
    for y in range(10, height - 10, 24):
        for x in range(10, width - 10, 9):
            pixels[y : y + 10, x : x + 3] = 0
    return pixels
