"""What a model is shown, and ink."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from ingest.vlm.base import VlmOptions
from ingest.vlm.images import looks_blank, page_image, unread_ink_share
from ragplane.core.schema import BBox
from tests.unit.ingest.vlm.pages import inked_page, lines_of, white_page


def decoded(data_url: str) -> tuple[str, Image.Image]:
    """The MIME type and the image of a data URL."""
    head, content = data_url.split(";base64,")
    return head.removeprefix("data:"), Image.open(io.BytesIO(base64.b64decode(content)))


def test_a_page_is_shown_at_the_size_that_was_counted() -> None:
    """Behaviour 7."""
    shown = page_image(inked_page(lines_of()), VlmOptions(max_pixels=300_000))
    mime, image = decoded(shown.data_url)
    assert mime == "image/png"
    assert image.size == (shown.width_pixels, shown.height_pixels) == (476, 616)
    assert shown.tokens == 476 * 616 // 784


def test_a_photograph_is_sent_as_jpeg() -> None:
    noise = np.random.default_rng(7).integers(0, 256, (1000, 1000, 3), dtype=np.uint8)
    mime, image = decoded(page_image(noise, VlmOptions()).data_url)
    assert (mime, image.format) == ("image/jpeg", "JPEG")


def test_paper_is_blank_and_a_line_of_print_is_not() -> None:
    paper = white_page()
    paper[:20] = 0  # the border of a scan
    paper[300:500, 200:400] = 220  # print on the other side
    assert looks_blank(paper)
    assert not looks_blank(inked_page(lines_of(["one line"])))
    assert not looks_blank(255 - inked_page(lines_of(["white on black"])))


def test_ink_outside_the_lines_is_told() -> None:
    lines = lines_of()
    page = inked_page(lines)
    boxes = [BBox(*(edge * 100 / 72 for edge in line.bbox)) for line in lines]
    assert unread_ink_share(page, boxes) == 0
    assert unread_ink_share(page, boxes[:1]) == pytest.approx(0.75, abs=0.15)
    page[500:900, 200:600] = 0
    assert unread_ink_share(page, boxes) > 0.7
    assert unread_ink_share(white_page(), []) == 0
