"""From a PDF to what a scanner makes of it: rendered, skewed, blurred, noisy, packed as JPEG."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import pymupdf
from PIL import Image, ImageFilter

from ingest.ocr import Pixels


@dataclass(frozen=True, slots=True)
class Wear:
    """What a scanner does to a page. `noise` is a standard deviation of grey levels of 255."""

    skew_degrees: float = 0.0
    blur_pixels: float = 0.0
    noise: float = 0.0
    jpeg_quality: int | None = None


NOISY_SKEWED = Wear(skew_degrees=1.5, blur_pixels=0.6, noise=12.0, jpeg_quality=55)


def render(pdf: bytes, dpi: float) -> list[Pixels]:
    """The pages as images, RGB uint8 [height, width, 3]."""
    with pymupdf.open(stream=pdf, filetype="pdf") as document:
        return [_pixels(page, dpi) for page in document]


def worn(image: Pixels, wear: Wear, seed: int = 0) -> Pixels:
    """The image after `wear`; it keeps its size."""
    page = Image.fromarray(image)
    if wear.skew_degrees:
        page = page.rotate(wear.skew_degrees, Image.Resampling.BICUBIC, fillcolor="white")
    if wear.blur_pixels:
        page = page.filter(ImageFilter.GaussianBlur(wear.blur_pixels))
    if wear.noise:
        grain = np.random.default_rng(seed).normal(0, wear.noise, (page.height, page.width, 1))
        page = Image.fromarray(np.clip(np.asarray(page) + grain, 0, 255).astype(np.uint8))
    if wear.jpeg_quality is not None:
        packed = io.BytesIO()
        page.save(packed, "JPEG", quality=wear.jpeg_quality)
        page = Image.open(packed)
    return np.asarray(page.convert("RGB"))


def scanned_pdf(images: list[Pixels], dpi: float) -> bytes:
    """A PDF with an image over each page and no text."""
    with pymupdf.open() as document:
        for image in images:
            packed = io.BytesIO()
            Image.fromarray(image).save(packed, "PNG")
            height, width = image.shape[:2]
            page = document.new_page(width=width * 72 / dpi, height=height * 72 / dpi)
            page.insert_image(page.rect, stream=packed.getvalue())
        content: bytes = document.tobytes()
    return content


def _pixels(page: pymupdf.Page, dpi: float) -> Pixels:
    pixmap = page.get_pixmap(matrix=pymupdf.Matrix(dpi / 72, dpi / 72), alpha=False)
    flat = np.frombuffer(pixmap.samples, dtype=np.uint8)
    return flat.reshape(pixmap.height, pixmap.width, 3).copy()
