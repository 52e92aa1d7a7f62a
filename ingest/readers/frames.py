"""Frames of image files as RGB pages of bounded size, whatever their mode, depth and direction."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np
from PIL import Image

from ingest.ocr import Pixels

_MAX_DECODED_BYTES = 400 << 20
_PROGRESSIVE_BYTES = 6  # a pixel: the decoder holds all coefficients, two bytes for each of three
_STRIP_ROWS = 256
_ASSUMED_DPI = 150.0
_PAPER_RATIOS = (1.2, 1.6)
_PAPER_LONG_INCHES = 11.7  # A4
_SENSIBLE_DPI = (50.0, 1200.0)
_SENSIBLE_INCHES = 25.0  # of the long side; a photograph of 4,000 pixels "at 72 dpi" has 56
_ORIENTATION = 0x0112  # EXIF and TIFF 6.0
_TO_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class TooManyPixelsError(ValueError):
    """An image that cannot be decoded in bounded memory."""


@dataclass(frozen=True, slots=True)
class Frame:
    """An upright RGB image, the size of its page in points, and the finest dpi that it offers."""

    image: Image.Image
    width_points: float
    height_points: float
    finest_dpi: float

    def at(self, dpi: float) -> Pixels:
        """The page at `dpi`; pixels that were not square become so."""
        size = (
            max(1, round(self.width_points * dpi / 72)),
            max(1, round(self.height_points * dpi / 72)),
        )
        if size == self.image.size:
            return np.asarray(self.image)
        return np.asarray(self.image.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0))


@contextmanager
def own_pixel_limit() -> Iterator[None]:
    """Pillow refuses by the size in the header alone; `decoded` knows what decoding will cost."""
    usual, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = usual


def decoded(image: Image.Image, max_pixels: int) -> Frame:
    """Decode the current frame of an opened image, at a lower scale where it is over `max_pixels`.

    Raises TooManyPixelsError before decoding, and what Pillow raises for broken data.
    """
    stored = image.size
    dpi = page_dpi(stored, image.info.get("dpi"))
    shrink = math.sqrt(stored[0] * stored[1] / max_pixels)
    if shrink > 1:
        image.draft(None, (int(stored[0] / shrink), int(stored[1] / shrink)))  # JPEG only
    _check_cost(image, stored)
    image.load()
    width_points, height_points = (side * 72 / one for side, one in zip(stored, dpi, strict=True))
    finest = max(one * now / side for one, now, side in zip(dpi, image.size, stored, strict=True))
    upright = _TO_UPRIGHT.get(image.getexif().get(_ORIENTATION, 1))
    rgb = _rgb(image, max(1, int(math.sqrt(image.width * image.height / max_pixels))))
    finest *= rgb.width / image.width
    if rgb.width * rgb.height > max_pixels:
        scale = math.sqrt(max_pixels / (rgb.width * rgb.height))
        finest *= scale
        rgb = rgb.resize((max(1, int(rgb.width * scale)), max(1, int(rgb.height * scale))))
    if upright is not None:
        rgb = rgb.transpose(upright)
        if upright not in _KEEP_SIDES:
            width_points, height_points = height_points, width_points
    return Frame(rgb, width_points, height_points, finest)


_KEEP_SIDES = (
    Image.Transpose.FLIP_LEFT_RIGHT,
    Image.Transpose.FLIP_TOP_BOTTOM,
    Image.Transpose.ROTATE_180,
)


def page_dpi(size: tuple[int, int], stored: object) -> tuple[float, float]:
    """Dots per inch, across and down: as stored in the file if sensible, else as of a usual page.

    An image in the proportions of paper is taken as one of A4 if it is large enough.
    """
    match stored:
        case (SupportsFloat() as x, SupportsFloat() as y):
            across, down = float(x), float(y)
            sensible = all(_SENSIBLE_DPI[0] <= one <= _SENSIBLE_DPI[1] for one in (across, down))
            if sensible and max(size[0] / across, size[1] / down) <= _SENSIBLE_INCHES:
                return across, down
    longest = max(size)
    is_paper = _PAPER_RATIOS[0] <= longest / min(size) <= _PAPER_RATIOS[1]
    dpi = max(_ASSUMED_DPI, longest / _PAPER_LONG_INCHES) if is_paper else _ASSUMED_DPI
    return dpi, dpi


def _check_cost(image: Image.Image, stored: tuple[int, int]) -> None:
    width, height = image.size
    cost = width * height * (1 if image.mode in ("1", "L") else 4)
    if image.info.get("progressive"):
        cost = stored[0] * stored[1] * _PROGRESSIVE_BYTES
    if cost > _MAX_DECODED_BYTES:
        raise TooManyPixelsError(f"{stored[0]} x {stored[1]} in mode {image.mode}")


def _rgb(image: Image.Image, factor: int) -> Image.Image:
    """The image as RGB, `factor` times smaller; by strips, for colours cost four bytes a pixel."""
    if factor == 1 and image.mode == "RGB":
        return image
    levels = _levels(image) if image.mode[0] in "IF" else None
    page = Image.new("RGB", (math.ceil(image.width / factor), math.ceil(image.height / factor)))
    rows = _STRIP_ROWS * factor
    for top in range(0, image.height, rows):
        strip = image.crop((0, top, image.width, min(image.height, top + rows)))
        page.paste(_strip_rgb(strip, levels).reduce(factor), (0, top // factor))
    return page


def _levels(image: Image.Image) -> tuple[float, float]:
    """The darkest and the lightest value of an image of one deep channel."""
    values = np.asarray(image)
    return float(values.min()), float(values.max())


def _strip_rgb(strip: Image.Image, levels: tuple[float, float] | None) -> Image.Image:
    if levels is not None:  # more than 8 bits, of which the whole image tells the range
        low, high = levels
        grey = (np.asarray(strip, dtype=np.float32) - low) * (255.0 / max(high - low, 1e-9))
        return Image.fromarray(grey.astype(np.uint8)).convert("RGB")
    if strip.has_transparency_data:
        strip = strip.convert("RGBA")
        white = Image.new("RGBA", strip.size, "white")
        return Image.alpha_composite(white, strip).convert("RGB")
    return strip.convert("RGB")
