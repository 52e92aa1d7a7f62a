"""Turn clean pages into what a scanner or a camera would have made of them."""

import io
from dataclasses import dataclass

import numpy as np
import pymupdf
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from pipelines.sample.layout import Pdf, new_pdf

DPI = 150

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Wear:
    """How badly a page comes out: skew in degrees, noise and blur in pixels, quarter turns."""

    skew: float = 0.8
    noise: float = 14.0
    blur: float = 0.6
    quality: int = 45
    turns: int = 0


def render(document: Pdf, number: int) -> Image.Image:
    """The page as a grey image at `DPI`."""
    pixmap = document[number].get_pixmap(dpi=DPI, colorspace=pymupdf.csGRAY)
    return Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples)


def scanned(document: Pdf, wear: Wear, seed: int) -> Pdf:
    """An image-only copy of the document; every page has its own skew and noise."""
    rng = np.random.default_rng(seed)
    copy = new_pdf()
    for number in range(len(document)):
        skew = wear.skew if number % 2 == 0 else -wear.skew
        page = _worn(render(document, number), wear, skew, rng)
        width, height = (side * 72 / DPI for side in page.size)
        target = copy.new_page(width=width, height=height)
        target.insert_image(target.rect, stream=_jpeg(page, wear.quality))
    return copy


def photographed(document: Pdf, seed: int) -> bytes:
    """The first page as a card pinned to a board, photographed at a slight angle."""
    rng = np.random.default_rng(seed)
    card = render(document, 0)
    width, height = card.width + 160, card.height + 140
    board = Image.fromarray(_noisy(np.full((height, width), 120, np.uint8), 16, rng))
    board.paste(70, (88, 78, 88 + card.width, 78 + card.height))
    board.paste(card, (80, 70))
    turned = board.rotate(1.6, Image.Resampling.BICUBIC, fillcolor=120)
    light = np.linspace(1.0, 0.78, width)
    lit = (np.asarray(turned, np.float64) * light).astype(np.uint8)
    tint = np.array([1.0, 0.96, 0.86])
    colour = (_noisy(lit, 5, rng)[..., None] * tint).astype(np.uint8)
    return _jpeg(Image.fromarray(colour).filter(ImageFilter.GaussianBlur(0.5)), 70)


def _worn(page: Image.Image, wear: Wear, skew: float, rng: np.random.Generator) -> Image.Image:
    tilted = page.rotate(skew, Image.Resampling.BICUBIC, fillcolor=255)
    soft = tilted.filter(ImageFilter.GaussianBlur(wear.blur))
    toned = (np.asarray(soft, np.float64) * 0.82 + 30).astype(np.uint8)
    return Image.fromarray(np.rot90(_noisy(toned, wear.noise, rng), wear.turns).copy())


def _noisy(pixels: Pixels, sigma: float, rng: np.random.Generator) -> Pixels:
    grain = rng.normal(0.0, sigma, pixels.shape)
    return np.clip(np.rint(pixels + grain), 0, 255).astype(np.uint8)


def _jpeg(image: Image.Image, quality: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, dpi=(DPI, DPI))
    return buffer.getvalue()
