"""Page images as a vision model is shown them, and what can be told from the pixels alone."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ingest.ocr import Pixels
from ingest.vlm.base import PageImage, VlmOptions
from ingest.vlm.tokens import scaled_size, visual_tokens
from ragplane.core.schema import BBox

_PNG_BYTES = 1_500_000  # a larger PNG is a photograph, which JPEG keeps as readable
_JPEG_QUALITY = 90
_WORKING_SIDE_PIXELS = 1024
_INK_CONTRAST = 64  # bleeding through from the other side of the paper is fainter
_BLANK_INK_SHARE = 0.0002  # a line of 12-point text on A4 is about 0.0010
_MARGIN_SHARE = 0.04  # black borders of scans
_CELL_PIXELS = 16


def page_image(image: Pixels, options: VlmOptions) -> PageImage:
    """`image` scaled to whole patches within `max_pixels`, as a PNG or, for photographs, JPEG."""
    height, width = image.shape[:2]
    size = scaled_size(width, height, options.max_pixels, options.patch_pixels)
    shown = Image.fromarray(image)
    if shown.size != size:
        shown = shown.resize(size, Image.Resampling.LANCZOS)
    mime, content = "image/png", _encoded(shown, "PNG")
    if len(content) > _PNG_BYTES:
        mime, content = "image/jpeg", _encoded(shown, "JPEG")
    url = f"data:{mime};base64,{base64.b64encode(content).decode('ascii')}"
    return PageImage(url, *size, visual_tokens(*size, options.patch_pixels))


def looks_blank(image: Pixels) -> bool:
    """Whether the page holds next to nothing that is much darker or lighter than its ground."""
    return float(_ink(image)[0].mean()) < _BLANK_INK_SHARE


def unread_ink_share(image: Pixels, boxes: Sequence[BBox]) -> float:
    """Share (0 to 1) of the inked places that lie in none of the `boxes`, in pixels of `image`.

    A place is a square of 16 pixels after the page is brought to about 1,024.
    """
    ink, scale = _ink(image)
    rows, columns = (side // _CELL_PIXELS * _CELL_PIXELS for side in ink.shape)
    cells = ink[:rows, :columns].reshape(
        rows // _CELL_PIXELS, _CELL_PIXELS, columns // _CELL_PIXELS, _CELL_PIXELS
    )
    inked = np.asarray(cells.any(axis=(1, 3)))
    unread = inked.copy()
    for box in boxes:
        x0, y0, x1, y1 = (int(edge * scale) // _CELL_PIXELS for edge in box)
        unread[max(0, y0) : y1 + 1, max(0, x0) : x1 + 1] = False
    return float(unread.sum() / inked.sum()) if inked.any() else 0.0


def _ink(image: Pixels) -> tuple[NDArray[np.bool_], float]:
    """Where a reduced page differs much from its ground, margins left out; and the reduction."""
    page = Image.fromarray(image).convert("L")
    page.thumbnail((_WORKING_SIDE_PIXELS, _WORKING_SIDE_PIXELS), Image.Resampling.BOX)
    grey = np.asarray(page, dtype=np.int16)
    ink: NDArray[np.bool_] = np.greater(np.abs(grey - np.median(grey)), _INK_CONTRAST)
    top, left = (int(side * _MARGIN_SHARE) for side in ink.shape)
    ink[:top] = ink[ink.shape[0] - top :] = False
    ink[:, :left] = ink[:, ink.shape[1] - left :] = False
    return ink, page.width / image.shape[1]


def _encoded(image: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, quality=_JPEG_QUALITY)
    return buffer.getvalue()
