"""Page images (PNG, JPEG, TIFF with many pages, WebP, BMP) through OCR."""

from __future__ import annotations

import io
import struct
import time
from collections.abc import Iterator
from functools import partial

from PIL import Image, UnidentifiedImageError

from ingest.layout import blocks_of_pages
from ingest.ocr.resolution import base_dpi
from ingest.ocr.upright import laid
from ingest.parsed import ParsedDocument, RawPage
from ingest.readers.base import ReadContext, title_or_name
from ingest.readers.frames import Frame, TooManyPixelsError, decoded, own_pixel_limit
from ingest.scanned import read_page
from ingest.shown import turned_size
from ragplane.core.errors import StageError
from ragplane.core.schema import PageSignals

_SIGNALS = PageSignals(0, 0, 0.0, 1.0, 0)
_REASON = "the file is an image"
_BROKEN = (  # what Pillow's decoders raise for data that breaks their format
    UnidentifiedImageError,
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    struct.error,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
)


def read_image(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read each page of a TIFF, or the one image of another format, as a page.

    A page that fails is kept with its error and without text. Raises StageError `parse` if no page
    can be decoded, if there are too many, or if the only one has too many pixels.
    """
    with own_pixel_limit():
        try:
            image = Image.open(io.BytesIO(content))
        except _BROKEN as error:
            raise StageError("parse", f"not a readable image ({error})") from error
        with image:
            mime = Image.MIME.get(image.format or "", "image/unknown")
            pages = [_page(image, number, context) for number in _numbers(image, context)]
    unreadable = [page.error for page in pages if page.error and page.error.stage == "parse"]
    if len(unreadable) == len(pages):
        raise unreadable[0]
    return ParsedDocument(title_or_name(None, context.name), mime, tuple(blocks_of_pages(pages)))


def _numbers(image: Image.Image, context: ReadContext) -> Iterator[int]:
    """Numbers of the pages. Frames of other formats than TIFF are an animation."""
    if image.format != "TIFF":
        return iter((1,))
    try:
        frames = getattr(image, "n_frames", 1)
    except _BROKEN as error:
        raise StageError("parse", f"not a readable image ({error})") from error
    if frames > context.limits.pages:
        limit = context.limits.pages
        raise StageError("parse", f"the image has {frames} pages, the limit is {limit}")
    return iter(range(1, frames + 1))


def _page(image: Image.Image, number: int, context: ReadContext) -> RawPage:
    if number in context.finished:
        return context.finished[number]
    started = time.perf_counter()
    try:
        page = _read(_decoded(image, number, context.limits.pixels), number, started, context)
    except StageError as error:
        seconds = time.perf_counter() - started
        page = RawPage(number, 0.0, 0.0, 0, "ocr", _REASON, _SIGNALS, seconds, error=error)
    context.on_page(page)
    return page


def _decoded(image: Image.Image, number: int, max_pixels: int) -> Frame:
    try:
        image.seek(number - 1)
        return decoded(image, max_pixels)
    except TooManyPixelsError as error:
        raise StageError(
            "parse", f"the image has too many pixels ({error})", page=number
        ) from error
    except _BROKEN as error:
        raise StageError("parse", f"not a readable image ({error})", page=number) from error


def _read(frame: Frame, number: int, started: float, context: ReadContext) -> RawPage:
    size = frame.width_points, frame.height_points
    render = partial(Frame.at, frame)
    scan = read_page(
        context.ocr, render, size, context.limits.pixels, number, finest_dpi=frame.finest_dpi
    )
    width, height = turned_size(*size, scan.rotation)
    page = RawPage(
        number=number,
        width_points=width,
        height_points=height,
        rotation=scan.rotation,
        route="ocr",
        reason=_REASON,
        signals=_SIGNALS,
        seconds=time.perf_counter() - started,
        paragraphs=scan.paragraphs,
        tables=scan.tables,
        turn=scan.rotation,
        skew_degrees=scan.skew_degrees,
        confidence=scan.confidence,
        notes=scan.notes,
    )
    if context.vlm is None:
        return page
    dpi = min(base_dpi(*size, context.limits.pixels), frame.finest_dpi)
    return context.vlm.improve(page, laid(frame.at(dpi), page.turn, page.skew_degrees))
