"""Frames of image files: modes, depths, direction, dpi, and bounds on what is decoded."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ingest.ocr import Pixels
from ingest.readers.frames import (
    Frame,
    TooManyPixelsError,
    decoded,
    own_pixel_limit,
    page_dpi,
)

BUDGET = 12_000_000


def stored(image: Image.Image, kind: str = "TIFF", **saving: Any) -> Image.Image:
    """The image as it is opened from a file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **saving)
    return Image.open(buffer)


def pixels(image: Image.Image, kind: str = "TIFF", **saving: Any) -> Pixels:
    return np.asarray(decoded(stored(image, kind, **saving), BUDGET).image)


def dark_left(mode: str, dark: Any, light: Any) -> Image.Image:
    """An image of 40 x 20 pixels, the left half dark."""
    image = Image.new(mode, (40, 20), light)
    image.paste(dark, (0, 0, 20, 20))
    return image


@pytest.mark.parametrize(
    ("kind", "image"),
    [
        ("TIFF", dark_left("1", 0, 1)),
        ("PNG", dark_left("L", 0, 255)),
        ("PNG", dark_left("L", 0, 255).convert("P")),
        ("PNG", dark_left("RGBA", (0, 0, 0, 255), (255, 0, 0, 0))),
        ("PNG", dark_left("LA", (0, 255), (0, 0))),
        ("TIFF", dark_left("CMYK", (0, 0, 0, 255), (0, 0, 0, 0))),
        ("JPEG", dark_left("CMYK", (0, 0, 0, 255), (0, 0, 0, 0))),
        ("PNG", Image.fromarray(np.repeat([[1000, 4095]], 20, 0).repeat(20, 1).astype("uint16"))),
        ("TIFF", dark_left("I", 0, 65_535)),
        ("TIFF", dark_left("F", 0.0, 1.0)),
        ("TIFF", dark_left("LAB", (0, 128, 128), (255, 128, 128))),
    ],
)
def test_any_mode_becomes_dark_on_white(kind: str, image: Image.Image) -> None:
    """Behaviour 9: transparent is white, deep grey keeps its range."""
    page = pixels(image, kind)
    assert page.shape == (20, 40, 3)
    assert page[10, 5].max() < 40
    assert page[10, 35].min() > 215


def test_transparent_colour_of_a_palette_is_white() -> None:
    image = dark_left("P", 1, 0)
    image.putpalette([0, 0, 0, 10, 10, 10])
    page = pixels(image, "PNG", transparency=0)
    assert (page[10, 5].max(), page[10, 35].min()) == (10, 255)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "TIFF", "PNG"])
def test_direction_noted_in_the_file_is_followed(kind: str, orientation: int) -> None:
    """Behaviour 11: what a viewer shows at the top left is there."""
    shown = np.full((32, 64, 3), 255, dtype=np.uint8)
    shown[:16, :16] = 0
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    image = Image.fromarray(shown)
    lying = image.transpose(undo[orientation]) if orientation > 1 else image
    exif = Image.Exif()
    exif[0x0112] = orientation
    frame = decoded(stored(lying, kind, exif=exif, dpi=(100, 100)), BUDGET)
    page = np.asarray(frame.image)
    assert page.shape == (32, 64, 3)
    assert page[4, 4].max() < 60
    assert page[-5, -5].min() > 200
    assert (frame.width_points, frame.height_points) == pytest.approx((46.08, 23.04), abs=0.01)


def test_page_keeps_its_points_when_it_is_scaled_down_to_the_budget() -> None:
    """Behaviour 10: a lower dpi."""
    frame = decoded(stored(Image.new("L", (5000, 4000)), "PNG", dpi=(300, 300)), 1_000_000)
    assert 990_000 < frame.image.width * frame.image.height <= 1_000_000
    assert (frame.width_points, frame.height_points) == pytest.approx((1200, 960), rel=1e-3)
    assert frame.finest_dpi == pytest.approx(300 * (1_000_000 / 20_000_000) ** 0.5, rel=0.01)


def test_jpeg_of_400_megapixels_is_decoded_at_a_lower_scale() -> None:
    """Behaviour 10: a 20,000 x 20,000 px page."""
    with own_pixel_limit():
        image = stored(Image.new("L", (20_000, 20_000), 255), "JPEG")
        frame = decoded(image, BUDGET)
        assert image.width <= 5000  # the decoder itself made it smaller
    assert frame.image.width == pytest.approx(BUDGET**0.5, rel=0.01)
    assert frame.width_points == pytest.approx(20_000 * 72 / 150)


@pytest.mark.parametrize(
    ("mode", "kind", "saving"),
    [("RGB", "PNG", {}), ("L", "JPEG", {"progressive": True})],
)
def test_image_that_cannot_be_decoded_in_bounded_memory_is_refused(
    mode: str, kind: str, saving: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 10: a named error."""
    monkeypatch.setattr("ingest.readers.frames._MAX_DECODED_BYTES", 1_000_000)
    image = stored(Image.new(mode, (600, 500)), kind, **saving)
    monkeypatch.setattr(image, "load", lambda: pytest.fail("decoded"))
    with pytest.raises(TooManyPixelsError, match=f"600 x 500 in mode {mode}") as caught:
        decoded(image, BUDGET)
    assert isinstance(caught.value, ValueError)


def test_strips_leave_no_seams() -> None:
    ramp = np.tile(np.linspace(0, 255, 2100).astype(np.uint8)[:, None], (1, 40))
    page = np.asarray(decoded(stored(Image.fromarray(ramp), "PNG"), 2100 * 40 // 4).image)
    assert page.shape == (1050, 20, 3)
    assert np.abs(np.diff(page[:, 10, 0].astype(int))).max() <= 1


@pytest.mark.parametrize(
    ("size", "tag", "dpi"),
    [
        ((2480, 3508), (300, 300), (300, 300)),
        ((1728, 1100), (204, 98), (204, 98)),  # a fax
        ((1000, 800), (72, 72), (72, 72)),  # a screenshot
        ((3024, 4032), (72, 72), (344.6, 344.6)),  # a photograph of a page
        ((2550, 3300), None, (282.1, 282.1)),
        ((1080, 2400), None, (150, 150)),  # a telephone's screen
        ((600, 300), (0, 0), (150, 150)),
        ((600, 300), (4000, 4000), (150, 150)),
    ],
)
def test_dots_per_inch_are_the_files_if_they_are_sensible(
    size: tuple[int, int], tag: object, dpi: tuple[float, float]
) -> None:
    assert page_dpi(size, tag) == pytest.approx(dpi, abs=0.1)


def test_pixels_that_are_not_square_become_so() -> None:
    frame = decoded(stored(Image.new("1", (408, 196)), dpi=(204, 98)), BUDGET)
    assert (frame.width_points, frame.height_points) == pytest.approx((144, 144))
    assert frame.at(100).shape == (200, 200, 3)
    assert frame.finest_dpi == pytest.approx(204)


def test_frame_at_its_own_size_is_not_resampled() -> None:
    image = Image.effect_noise((100, 80), 50).convert("RGB")
    frame = Frame(image, 48.0, 38.4, 150.0)
    assert np.array_equal(frame.at(150), np.asarray(image))


def test_pixel_limit_of_the_library_is_given_back() -> None:
    usual = Image.MAX_IMAGE_PIXELS
    with own_pixel_limit():
        assert Image.MAX_IMAGE_PIXELS is None
    assert usual == Image.MAX_IMAGE_PIXELS
