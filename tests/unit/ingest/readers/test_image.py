"""Page images."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from ingest.ocr import OcrLine, Pixels
from ingest.parsed import ParsedDocument
from ragplane.core.errors import StageError
from tests.unit.ingest.readers.engines import SidewaysEngine

Read = Callable[..., ParsedDocument]


def encoded(image: Image.Image, kind: str, **saving: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **saving)
    return buffer.getvalue()


def blank_image(width: int = 600, height: int = 300, mode: str = "RGB") -> Image.Image:
    return Image.new(mode, (width, height))


@pytest.mark.parametrize(
    ("kind", "mime"),
    [
        ("PNG", "image/png"),
        ("JPEG", "image/jpeg"),
        ("TIFF", "image/tiff"),
        ("WEBP", "image/webp"),
        ("BMP", "image/bmp"),
    ],
)
def test_image_is_one_recognised_page(kind: str, mime: str, read: Read, ocr: Any) -> None:
    document = read(encoded(blank_image(), kind), "notice-board.bin")
    [page] = document.pages
    assert (document.mime, document.title) == (mime, "notice board")
    assert (page.route, page.text) == ("ocr", "recognised text")
    assert (page.width_points, page.height_points) == (288, 144)
    assert page.blocks[0].bbox == pytest.approx((48, 57.6, 240, 72))
    assert ocr.images[0].shape == (300, 600, 3)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "CMYK"])
def test_any_mode_reaches_the_engine_as_rgb(mode: str, read: Read, ocr: Any) -> None:
    read(encoded(blank_image(mode=mode), "TIFF"))
    assert ocr.images[0].shape == (300, 600, 3)


def test_each_frame_of_a_tiff_is_a_page(read: Read, ocr: Any) -> None:
    frames = [blank_image(), blank_image(100, 200), blank_image()]
    content = encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    pages = read(content).pages
    assert [page.number for page in pages] == [1, 2, 3]
    assert [image.shape[:2] for image in ocr.images] == [(300, 600), (200, 100), (300, 600)]


def test_orientation_note_of_a_photograph_is_followed(read: Read, ocr: Any) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn 90 degrees clockwise to show
    read(encoded(blank_image(), "JPEG", exif=exif))
    assert ocr.images[0].shape == (600, 300, 3)


def test_sideways_image_has_the_size_of_the_turned_page(read: Read) -> None:
    [page] = read(encoded(blank_image(300, 600), "PNG"), engine=SidewaysEngine()).pages
    assert page.rotation == 90
    assert (page.width_points, page.height_points) == (288, 144)


def test_large_image_is_scaled_down_and_its_page_is_not(read: Read, ocr: Any) -> None:
    [page] = read(encoded(blank_image(5000, 4000, "L"), "PNG")).pages
    height, width = ocr.images[0].shape[:2]
    assert 11_900_000 < height * width <= 12_000_000
    assert page.width_points == pytest.approx(5000 * 72 / 150, rel=1e-3)


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds no pixels."""
    fields = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", fields), (b"IDAT", b""), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


@pytest.mark.parametrize("side", [10_000, 20_000])  # the library warns of one, refuses the other
def test_image_of_too_many_pixels_is_refused_before_it_is_decoded(side: int, read: Read) -> None:
    with pytest.raises(StageError, match="parse: the image has too many pixels"):
        read(png_header(side, side))


@pytest.mark.parametrize("kept", [10, 40, 700])
def test_broken_image_is_refused_by_name(kept: int, read: Read) -> None:
    noise = Image.effect_noise((100, 100), 50)
    with pytest.raises(StageError, match="parse: not a readable image"):
        read(encoded(noise, "PNG")[:kept])


class BrokenEngine:
    """Fails on every image."""

    def recognise(self, image: Pixels) -> list[OcrLine]:
        raise RuntimeError("no memory")


def test_engine_that_fails_is_an_ocr_error_naming_the_page(read: Read) -> None:
    with pytest.raises(StageError, match=r"ocr: .*no memory") as caught:
        read(encoded(blank_image(), "PNG"), engine=BrokenEngine())
    assert caught.value.page == 1
