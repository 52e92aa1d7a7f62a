"""Makers of small PDF files."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pymupdf
import pytest
from PIL import Image

Draw = Callable[[Any], None]
MakePdf = Callable[..., bytes]

A4 = (595.0, 842.0)


@pytest.fixture
def make_pdf() -> MakePdf:
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
    """Draws one paragraph."""

    def at(text: str, x: float = 72, y: float = 100, **style: Any) -> Draw:
        return lambda page: page.insert_text((x, y), text, **style)

    return at


def full_page_image(page: Any) -> None:
    page.insert_image(page.rect, stream=png(60, 80), keep_proportion=False)


def png(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (200, 200, 200)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def scan() -> Draw:
    """Covers the page with an image."""
    return full_page_image
