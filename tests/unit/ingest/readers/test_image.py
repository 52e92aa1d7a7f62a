"""Page images."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from ingest.ocr import OcrEngine, OcrLine, Pixels
from ingest.parsed import ParsedDocument, RawPage
from ingest.readers.base import ReadContext, ReadLimits
from ingest.readers.image import read_image
from ingest.triage import Thresholds
from ragplane.core.errors import StageError
from ragplane.core.schema import Page
from tests.unit.ingest.readers.engines import Second, SidewaysEngine

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
    document = read(encoded(blank_image(), kind, dpi=(150, 150)), "notice-board.bin")
    [page] = document.pages
    assert (document.mime, document.title) == (mime, "notice board")
    assert (page.route, page.text) == ("ocr", "recognised text")
    assert (page.width_points, page.height_points) == pytest.approx((288, 144), abs=0.1)
    assert page.blocks[0].bbox == pytest.approx((48, 57.6, 240, 72), abs=0.1)
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


def test_sideways_image_keeps_its_size_and_boxes_lie_on_it_as_shown(read: Read) -> None:
    """Behaviour 11."""
    [page] = read(encoded(blank_image(300, 600), "PNG"), engine=SidewaysEngine()).pages
    assert page.rotation == 90
    assert (page.width_points, page.height_points) == (144, 288)
    [block] = page.blocks
    assert block.bbox == pytest.approx((4.8, 4.8, 19.2, 283.2), abs=0.1)  # up the left side


def test_large_image_is_scaled_down_and_its_page_is_not(read: Read, ocr: Any) -> None:
    """Behaviour 10: a lower dpi."""
    [page] = read(encoded(blank_image(7000, 3000, "L"), "PNG")).pages
    height, width = ocr.images[0].shape[:2]
    assert 11_900_000 < height * width <= 12_010_000  # sides are whole pixels
    assert page.width_points == pytest.approx(7000 * 72 / 150, rel=1e-3)


def test_fine_scan_is_read_at_the_usual_dots(read: Read, ocr: Any) -> None:
    [page] = read(encoded(blank_image(1200, 600, "L"), "PNG", dpi=(300, 300))).pages
    assert ocr.images[0].shape == (300, 600, 3)
    assert (page.width_points, page.height_points) == pytest.approx((288, 144), abs=0.1)


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds no pixels."""
    fields = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", fields), (b"IDAT", b""), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def test_image_of_too_many_pixels_is_refused_before_it_is_decoded(read: Read) -> None:
    """Behaviour 10: a 20,000 x 20,000 px page."""
    cause = "parse: the image has too many pixels \\(20000 x 20000 in mode RGB\\)"
    with pytest.raises(StageError, match=cause):
        read(png_header(20_000, 20_000))


@pytest.mark.parametrize("kept", [10, 40, 700])
def test_broken_image_is_refused_by_name(kept: int, read: Read) -> None:
    noise = Image.effect_noise((100, 100), 50)
    with pytest.raises(StageError, match="parse: not a readable image"):
        read(encoded(noise, "PNG")[:kept])


class BrokenEngine:
    """Fails on every image."""

    def recognise(self, image: Pixels) -> list[OcrLine]:
        raise RuntimeError("no memory")


def test_engine_that_fails_is_an_ocr_error_of_the_page(read: Read) -> None:
    """Behaviour 25: the stage and the true cause."""
    [page] = read(encoded(blank_image(), "PNG"), engine=BrokenEngine()).pages
    assert page.error is not None
    assert (page.error.stage, page.error.page) == ("ocr", 1)
    assert "no memory" in page.error.cause
    assert (page.route, page.text) == ("ocr", "")


def pages_of(content: bytes, engine: OcrEngine, **context: Any) -> tuple[Page, ...]:
    return read_image(content, ReadContext("scan.tiff", engine, Thresholds(), **context)).pages


def three_pages() -> bytes:
    """A TIFF whose pages are 100, 200 and 300 pixels wide."""
    frames = [Image.effect_noise((width, 80), 50) for width in (100, 200, 300)]
    return encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:])


def test_confidence_of_a_page_is_kept(ocr: Any) -> None:
    """Behaviour 3."""
    assert pages_of(three_pages(), ocr)[0].confidence == pytest.approx(0.95)


def test_finished_pages_are_taken_and_new_ones_told(ocr: Any) -> None:
    """Behaviour 21: a resumed run repeats no finished page."""
    told: list[RawPage] = []
    pages_of(three_pages(), ocr, on_page=told.append)
    assert [raw.number for raw in told] == [1, 2, 3]
    kept = {2: told[1]}
    ocr.images.clear()
    told.clear()
    pages = pages_of(three_pages(), ocr, finished=kept, on_page=told.append)
    assert [raw.number for raw in told] == [1, 3]
    assert [image.shape[1] for image in ocr.images] == [100, 300]
    assert [page.text for page in pages] == ["recognised text"] * 3


def test_frame_that_cannot_be_decoded_costs_itself_only(ocr: Any) -> None:
    """Behaviour 10."""
    frames = [Image.effect_noise((100, 80), 50) for _ in range(3)]
    content = bytearray(
        encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:], compression="jpeg")
    )
    marks = [at for at in range(len(content)) if content[at : at + 3] == b"\xff\xd8\xff"]
    second = marks[len(marks) // 3]
    content[second : second + 40] = bytes(40)
    first, broken, third = pages_of(bytes(content), ocr)
    assert broken.error is not None
    assert (broken.error.stage, broken.error.page) == ("parse", 2)
    assert (first.text, third.text) == ("recognised text", "recognised text")


def test_too_many_frames_are_refused(ocr: Any) -> None:
    with pytest.raises(StageError, match="parse: the image has 3 pages, the limit is 2"):
        pages_of(three_pages(), ocr, limits=ReadLimits(pages=2))


def test_animation_is_one_page(ocr: Any) -> None:
    frames = [blank_image(), blank_image()]
    content = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:])
    assert len(pages_of(content, ocr)) == 1


def test_images_are_handed_to_the_vision_model_upright() -> None:
    """Behaviour 3."""
    second = Second()
    context = ReadContext("scan", SidewaysEngine(), Thresholds(), vlm=second)
    [page] = read_image(encoded(blank_image(300, 600), "PNG"), context).pages
    assert (page.route, page.text) == ("vlm", "read again")
    [image] = second.images
    assert image.shape[1] > image.shape[0]
