"""Page images (PNG, JPEG, TIFF with many pages, WebP, BMP) through OCR."""

from __future__ import annotations

import io
import time
import warnings

import numpy as np
from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError

from ingest.layout import blocks_of_pages
from ingest.parsed import ParsedDocument, RawPage
from ingest.readers.base import ReadContext, title_or_name
from ingest.scanned import read_scan, upright_size
from ragplane.core.errors import StageError
from ragplane.core.schema import PageSignals

_ASSUMED_DPI = 150.0
_MAX_PIXELS = 12_000_000


def read_image(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read each frame of an image as a page.

    Raises StageError `parse` for an image that cannot be decoded or is too large to be safe.
    """
    pages: list[RawPage] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content)) as image:
                mime = Image.MIME.get(image.format or "", "image/unknown")
                for number, frame in enumerate(ImageSequence.Iterator(image), start=1):
                    pages.append(_read_frame(frame, number, context))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise StageError("parse", f"the image has too many pixels ({error})") from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise StageError("parse", f"not a readable image ({error})") from error
    return ParsedDocument(title_or_name(None, context.name), mime, tuple(blocks_of_pages(pages)))


def _read_frame(frame: Image.Image, number: int, context: ReadContext) -> RawPage:
    started = time.perf_counter()
    upright = ImageOps.exif_transpose(frame).convert("RGB")
    dpi = _ASSUMED_DPI
    pixels = upright.width * upright.height
    if pixels > _MAX_PIXELS:
        scale = (_MAX_PIXELS / pixels) ** 0.5
        upright = upright.resize((int(upright.width * scale), int(upright.height * scale)))
        dpi *= scale
    paragraphs, rotation = read_scan(context.ocr, np.asarray(upright), dpi, number)
    width, height = upright_size(upright.width * 72 / dpi, upright.height * 72 / dpi, rotation)
    return RawPage(
        number=number,
        width_points=width,
        height_points=height,
        rotation=rotation,
        route="ocr",
        reason="the file is an image",
        signals=PageSignals(0, 0, 0.0, 1.0, 0),
        seconds=time.perf_counter() - started,
        paragraphs=paragraphs,
    )
