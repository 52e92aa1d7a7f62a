"""Orientation of page images, the lazy engine, and the real one on a rendered line."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from ingest.ocr import LazyOcr, OcrLine, Pixels, RapidOcrEngine, legibility, read_upright
from ragplane.core.schema import BBox

WIDE, TALL = BBox(100, 100, 500, 130), BBox(100, 100, 130, 500)
GOOD = OcrLine("a line that reads well", WIDE, 0.97)
ON_ITS_SIDE = OcrLine("o lin hot reods", TALL, 0.7)
ON_ITS_HEAD = OcrLine("llew speer touf", WIDE, 0.6)


class TurnedPage:
    """Recognises a page that lies turned: it reads well only after `turn` degrees clockwise."""

    def __init__(self, turn: int) -> None:
        self.page = np.zeros((40, 60, 3), dtype=np.uint8)
        self.page[0, 0] = 255  # the corner tells how far an image was turned
        self.turn = turn
        self.tried: list[int] = []

    def recognise(self, image: Pixels) -> list[OcrLine]:
        corners = {0: image[0, 0], 90: image[0, -1], 180: image[-1, -1], 270: image[-1, 0]}
        [turn] = [turn for turn, pixel in corners.items() if pixel[0] == 255]
        self.tried.append(turn)
        if turn == self.turn:
            return [GOOD]
        return [ON_ITS_HEAD if (turn - self.turn) % 360 == 180 else ON_ITS_SIDE]


@pytest.mark.parametrize(
    ("turn", "tried", "size"),
    [
        (0, [0], (60, 40)),
        (90, [0, 90], (40, 60)),
        (180, [0, 180], (60, 40)),
        (270, [0, 90, 270], (40, 60)),
    ],
)
def test_page_is_turned_upright_with_as_few_tries_as_needed(
    turn: int, tried: list[int], size: tuple[int, int]
) -> None:
    engine = TurnedPage(turn)
    page = read_upright(engine, engine.page)
    assert engine.tried == tried
    assert page.rotation == turn
    assert page.lines == (GOOD,)
    assert (page.width_pixels, page.height_pixels) == size


class PoorPage:
    """A page that reads badly whichever way it lies."""

    def __init__(self, *lines: OcrLine) -> None:
        self.lines = list(lines)
        self.calls = 0

    def recognise(self, image: Pixels) -> list[OcrLine]:
        self.calls += 1
        return self.lines


def test_page_without_lines_is_tried_once() -> None:
    engine = PoorPage()
    page = read_upright(engine, np.zeros((4, 4, 3), dtype=np.uint8))
    assert (engine.calls, page.lines, page.rotation) == (1, (), 0)


def test_page_that_turning_does_not_better_stays_as_it_lies() -> None:
    engine = PoorPage(ON_ITS_HEAD)
    page = read_upright(engine, np.zeros((4, 4, 3), dtype=np.uint8))
    assert (engine.calls, page.rotation) == (2, 0)


def test_legibility_weighs_by_length_and_lowers_lines_on_their_side() -> None:
    assert legibility([]) == 0
    assert legibility([GOOD]) == pytest.approx(0.97)
    mixed = [OcrLine("abcdefgh", WIDE, 1.0), OcrLine("xy", WIDE, 0.0)]
    assert legibility(mixed) == pytest.approx(0.8)
    assert legibility([OcrLine("abcd", TALL, 1.0)]) == pytest.approx(0.5)


def test_engine_is_made_on_first_use_and_once() -> None:
    made: list[PoorPage] = []

    def make() -> PoorPage:
        made.append(PoorPage(GOOD))
        return made[-1]

    lazy = LazyOcr(make)
    assert made == []
    image = np.zeros((4, 4, 3), dtype=np.uint8)
    assert lazy.recognise(image) == lazy.recognise(image) == [GOOD]
    assert len(made) == 1


TEXT = "The harbour opens at seven"


@pytest.fixture(scope="module")
def rapid() -> RapidOcrEngine:
    return RapidOcrEngine(threads=2)


def rendered_line() -> Image.Image:
    """A line of 12-point text as a scan at 150 dpi shows it."""
    image = Image.new("RGB", (440, 400), "white")
    font = ImageFont.load_default(size=12 * 150 / 72)
    ImageDraw.Draw(image).text((40, 60), TEXT, font=font, fill="black")
    return image


@pytest.mark.parametrize("turn", [0, 90])
def test_real_engine_reads_a_line_upright_and_on_its_side(turn: int, rapid: RapidOcrEngine) -> None:
    lying = rendered_line().rotate(turn, expand=True)  # anticlockwise
    page = read_upright(rapid, np.asarray(lying))
    assert page.rotation == turn
    [line] = page.lines
    assert line.text == TEXT
    assert line.confidence > 0.9
    assert line.bbox == pytest.approx((40, 65, 375, 90), abs=15)


def test_real_engine_finds_nothing_on_a_white_page(rapid: RapidOcrEngine) -> None:
    assert rapid.recognise(np.full((300, 300, 3), 255, dtype=np.uint8)) == []
