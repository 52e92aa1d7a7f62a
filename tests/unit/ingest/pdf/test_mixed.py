"""Pages that hold text and a scanned region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ingest.ocr import OcrLine, Pixels
from ingest.parsed import ParsedDocument
from ragplane.core.schema import BBox
from tests.unit.ingest.pdf.conftest import picture, printed
from tests.unit.ingest.readers.engines import SidewaysEngine

MakePdf = Callable[..., bytes]
Read = Callable[..., ParsedDocument]

REGION = (72, 200, 472, 400)


def page_around(draw: Callable[[Any], None]) -> Callable[[Any], None]:
    def page(page: Any) -> None:
        page.insert_text((72, 120), "Above the figure there is text of the page itself.")
        draw(page)
        page.insert_text((72, 500), "Below the figure there is text of the page itself.")

    return page


class OneLine:
    """Recognises one line at a place in pixels, and remembers the images."""

    def __init__(self, box: BBox) -> None:
        self.images: list[Pixels] = []
        self._box = box

    def recognise(self, image: Pixels) -> list[OcrLine]:
        self.images.append(image)
        return [OcrLine("scanned words", self._box, 0.9)]


def test_only_the_scanned_region_is_recognised_and_put_in_its_place(
    make_pdf: MakePdf, read: Read
) -> None:
    """Behaviour 5."""
    engine = OneLine(BBox(20, 30, 400, 60))
    draw = picture(REGION, printed(800, 400))
    [page] = read(make_pdf(page_around(draw)), engine=engine).pages
    assert page.route == "text"
    assert [block.text.split()[0] for block in page.blocks] == ["Above", "scanned", "Below"]
    [image] = engine.images
    assert image.shape[1] == pytest.approx(400 * 150 / 72, abs=2)
    assert image.shape[0] == pytest.approx(200 * 150 / 72, abs=2)
    box = page.blocks[1].bbox
    assert box is not None
    assert box == pytest.approx((81.6, 214.4, 264, 228.8), abs=1)
    assert page.confidence == pytest.approx(0.9)


def test_lines_of_a_leaning_picture_lie_where_they_are_shown(
    make_pdf: MakePdf, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviours 5 and 11: laid straight to be read, their boxes are laid back."""
    monkeypatch.setattr("ingest.ocr.upright.skew_degrees", lambda *_: 5.0)
    boxes = BBox(400, 200, 430, 214), BBox(20, 200, 50, 214)  # of 833 by 417 pixels
    draw = picture(REGION, printed(800, 400))
    places = []
    for box in boxes:
        [page] = read(make_pdf(page_around(draw)), engine=OneLine(box)).pages
        shown = page.blocks[1].bbox
        assert shown is not None
        places.append((shown.y0 + shown.y1) / 2)
    assert places == pytest.approx([299.4, 299.4], abs=1)


def test_picture_that_lies_on_its_side_is_told(make_pdf: MakePdf, read: Read) -> None:
    """Behaviours 3 and 5: nothing is dropped in silence."""
    draw = picture((72, 200, 272, 460), printed(400, 520))
    [page] = read(make_pdf(page_around(draw)), engine=SidewaysEngine()).pages
    assert [block.text.split()[0] for block in page.blocks] == ["Above", "Below"]
    [note] = page.notes
    assert (note.kind, note.text) == (
        "degraded",
        "ocr: lines of a picture that lies on its side, left out: 1",
    )
    assert note.bbox == pytest.approx((72, 200, 272, 460), abs=1)


def test_recognised_line_that_the_page_has_as_text_is_not_doubled(
    make_pdf: MakePdf, read: Read
) -> None:
    """Behaviour 5."""

    def labelled(page: Any) -> None:
        picture(REGION, printed(800, 400))(page)
        page.insert_text((82, 225), "scanned words", fontsize=10)

    engine = OneLine(BBox(20, 30, 200, 60))
    [page] = read(make_pdf(page_around(labelled)), engine=engine).pages
    assert len(engine.images) == 1
    assert page.text.count("scanned words") == 1


def photo() -> Any:
    return np.random.default_rng(1).integers(0, 255, (100, 200, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("box", "pixels"),
    [
        (REGION, photo()),
        (REGION, np.full((50, 100, 3), 250, np.uint8)),
        ((72, 200, 132, 260), printed(200, 200)),
    ],
    ids=["photograph", "plain", "logo"],
)
def test_pictures_without_text_are_not_recognised(
    box: tuple[float, float, float, float], pixels: Any, make_pdf: MakePdf, read: Read, ocr: Any
) -> None:
    """Behaviour 5."""
    [page] = read(make_pdf(page_around(picture(box, pixels)))).pages
    assert page.route == "text"
    assert ocr.images == []
    assert len(page.blocks) == 2
