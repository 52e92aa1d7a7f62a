"""Orientation of page images, confidence and resolution, the lazy engine, and the real one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from ingest.ocr import (
    LazyOcr,
    OcrLine,
    Pixels,
    RapidOcrEngine,
    legibility,
    make_engine,
    page_confidence,
    read_upright,
)
from ingest.ocr.base import detection_side_pixels, line_of
from ingest.ocr.resolution import base_dpi, finer_dpi
from ingest.ocr.upright import skew_degrees, straightened
from ragplane.core.schema import BBox

WIDE, TALL = BBox(100, 100, 500, 130), BBox(100, 100, 130, 500)
GOOD = OcrLine("a line that reads well", WIDE, 0.97)
ON_ITS_SIDE = OcrLine("o lin hot reods", TALL, 0.7)
ON_ITS_SIDE_READ = OcrLine("a line that reads well", TALL, 0.97)
ON_ITS_HEAD = OcrLine("llew speer touf", WIDE, 0.6)


class TurnedPage:
    """Recognises a page that lies turned: it reads well only after `turn` degrees clockwise.

    Like a real engine it turns tall pieces anticlockwise, and reads them where that is right.
    """

    def __init__(self, turn: int) -> None:
        rows = np.mgrid[0:600, 0:620][0]  # brighter from top to bottom
        self.page = np.dstack([rows // 4] * 3).astype(np.uint8)
        self.turn = turn
        self.tried: list[int] = []
        self.pixels: list[int] = []

    def recognise(self, image: Pixels) -> list[OcrLine]:
        down, right = (int(end[0]) - int(image[0, 0, 0]) for end in (image[-1, 0], image[0, -1]))
        turn = (0 if down > 0 else 180) if down else (270 if right > 0 else 90)
        self.tried.append(turn)
        self.pixels.append(image.shape[0] * image.shape[1])
        match (self.turn - turn) % 360:
            case 0:
                return [GOOD]
            case 180:
                return [ON_ITS_HEAD]
            case 270:
                return [ON_ITS_SIDE_READ]
        return [ON_ITS_SIDE]


@pytest.mark.parametrize(
    ("turn", "tried"), [(0, [0]), (90, [0, 90, 90]), (180, [0, 180, 180]), (270, [0, 270, 270])]
)
def test_page_is_turned_upright_after_a_trial_on_a_few_lines(turn: int, tried: list[int]) -> None:
    """Behaviour 11."""
    engine = TurnedPage(turn)
    page = read_upright(engine, engine.page)
    assert engine.tried == tried
    assert page.rotation == turn
    assert page.lines == (GOOD,)
    sides = (page.width_pixels, page.height_pixels)
    assert sides == ((600, 620) if turn in (90, 270) else (620, 600))
    trials = engine.pixels[1:-1]
    assert all(pixels < 0.75 * engine.pixels[0] for pixels in trials)


class PoorPage:
    """A page that reads badly whichever way it lies."""

    def __init__(self, *lines: OcrLine) -> None:
        self.lines = list(lines)
        self.calls = 0

    def recognise(self, image: Pixels) -> list[OcrLine]:
        self.calls += 1
        return self.lines


PAGE = np.zeros((600, 600, 3), dtype=np.uint8)


def test_page_without_lines_is_tried_once() -> None:
    engine = PoorPage()
    page = read_upright(engine, PAGE)
    assert (engine.calls, page.lines, page.rotation) == (1, (), 0)


def test_page_that_turning_does_not_better_stays_as_it_lies() -> None:
    engine = PoorPage(ON_ITS_HEAD)
    page = read_upright(engine, PAGE)
    assert (engine.calls, page.rotation) == (2, 0)


def test_legibility_weighs_by_length_and_lowers_lines_on_their_side() -> None:
    assert legibility([]) == 0
    assert legibility([GOOD]) == pytest.approx(0.97)
    mixed = [OcrLine("abcdefgh", WIDE, 1.0), OcrLine("xy", WIDE, 0.0)]
    assert legibility(mixed) == pytest.approx(0.8)
    assert legibility([OcrLine("abcd", TALL, 1.0)]) == pytest.approx(0.5)


def leaning(x: float, y: float, width: float, height: float, degrees: float) -> OcrLine:
    """A rectangle about (x, y) that falls to the right by `degrees`."""
    turn = np.radians(degrees)
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    half = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * (width / 2, height / 2)
    return line_of("leaning", (half @ matrix.T + (x, y)).tolist(), 0.9)


@pytest.mark.parametrize("degrees", [-12.0, -1.5, 0.0, 3.0])
def test_leaning_line_has_its_angle_and_gets_its_box_back(degrees: float) -> None:
    line = leaning(500, 300, 400, 30, degrees)
    assert line.angle_degrees == pytest.approx(degrees)
    straight = straightened(line, degrees, (500, 300))
    assert straight.bbox == pytest.approx((300, 285, 700, 315))
    assert straight.angle_degrees == pytest.approx(0)


def test_tall_line_leans_as_its_long_edges_do() -> None:
    assert leaning(100, 300, 30, 400, 2.0).angle_degrees == pytest.approx(2.0)


def test_lines_of_a_skewed_page_are_put_on_level_rows() -> None:
    """Behaviour 11: a small angle is taken out about the middle of the page."""
    turn = np.radians(2.0)
    left = leaning(300 - 200 * np.cos(turn), 300 - 200 * np.sin(turn), 200, 30, 2.0)
    right = leaning(300 + 200 * np.cos(turn), 300 + 200 * np.sin(turn), 200, 30, 2.0)
    page = read_upright(PoorPage(left, right), PAGE)
    assert page.skew_degrees == pytest.approx(2.0)
    assert [line.bbox.y0 for line in page.lines] == pytest.approx([285, 285])
    assert [line.bbox.x0 for line in page.lines] == pytest.approx([0, 400])


def test_skew_is_that_of_most_of_the_long_lines() -> None:
    level, short = leaning(300, 100, 100, 20, 0.0), leaning(300, 200, 30, 20, 9.0)
    skewed = leaning(300, 300, 500, 20, 1.0)
    assert skew_degrees([level, skewed, short]) == pytest.approx(1.0)
    assert skew_degrees([level, short]) == 0
    assert skew_degrees([leaning(300, 300, 500, 20, 0.1)]) == 0
    assert skew_degrees([leaning(300, 300, 900, 20, 35.0)]) == 0
    assert skew_degrees([]) == 0


def test_page_confidence_is_the_mean_over_characters() -> None:
    """Behaviour 3."""
    assert page_confidence([(90, 1.0), (5, 0.5), (5, 0.3)]) == pytest.approx(0.94)
    assert page_confidence([]) is None


SIDES = [(0, 0), (600, 0), (600, 30), (0, 30)]


@pytest.mark.parametrize("text", ["", " ", ".", ". .   .", "3 3  3."])
def test_line_with_next_to_nothing_read_in_it_counts_as_unread(text: str) -> None:
    """Behaviour 3: engines are sure of the few signs that they know of a foreign script."""
    line = line_of(text, SIDES, 0.98)
    assert (line.text, line.confidence) == ("", 0.0)
    assert line.characters == pytest.approx(53, abs=1)  # that it has room for


@pytest.mark.parametrize(
    ("text", "corners"),
    [
        ("7", [(0, 0), (24, 0), (24, 16), (0, 16)]),
        ("A letter s p a c e d title", SIDES),
        ("港口每天早上七点开放", SIDES),
        ("a tall line of text", [(0, 0), (30, 0), (30, 400), (0, 400)]),
    ],
)
def test_line_that_was_read_is_kept(text: str, corners: list[tuple[float, float]]) -> None:
    line = line_of(text, corners, 0.98)
    assert (line.text, line.confidence, line.characters) == (text, 0.98, len(text))


def test_page_that_reads_no_better_turned_is_not_turned() -> None:
    """Behaviours 3 and 11: one sign among unread lines tells nothing of how a page lies."""

    class Signs:
        calls = 0

        def recognise(self, image: Pixels) -> list[OcrLine]:
            self.calls += 1
            unread = [
                line_of("", [(0, y), (600, y), (600, y + 30), (0, y + 30)], 0) for y in (0, 90)
            ]
            return [*unread, OcrLine(".", BBox(0, 200, 10, 230), 0.9)] if self.calls > 1 else unread

    engine = Signs()
    assert read_upright(engine, PAGE).rotation == 0
    assert engine.calls == 2


def test_page_too_large_for_the_budget_is_recognised_at_fewer_dots() -> None:
    """Behaviour 10: a huge page has a lower dpi."""
    assert base_dpi(595, 842, 12_000_000) == 150
    dpi = base_dpi(14_400, 14_400, 12_000_000)
    assert (14_400 / 72 * dpi) ** 2 == pytest.approx(12_000_000)


@pytest.mark.parametrize(
    ("confidence", "height", "pixels", "dpi"),
    [
        (0.80, 12.0, 12_000_000, 300.0),
        (0.80, 12.0, 4_000_000, 203.4),
        (0.98, 12.0, 12_000_000, None),
        (0.80, 30.0, 12_000_000, None),
        (0.80, 12.0, 2_500_000, None),
    ],
)
def test_doubtful_small_print_gets_more_dots_if_the_budget_allows(
    confidence: float, height: float, pixels: int, dpi: float | None
) -> None:
    finer = finer_dpi(150, confidence, height, (595, 842), pixels)
    assert finer == (None if dpi is None else pytest.approx(dpi, abs=0.1))


@pytest.mark.parametrize(("sides", "side"), [((1754, 1240), 1280), ((300, 500), 500)])
def test_lines_are_looked_for_in_a_smaller_image(sides: tuple[int, int], side: int) -> None:
    assert detection_side_pixels(*sides) == side
    assert detection_side_pixels(700, 1000) == 960


def test_engine_is_made_on_first_use_and_once() -> None:
    made: list[PoorPage] = []

    def make() -> PoorPage:
        made.append(PoorPage(GOOD))
        return made[-1]

    lazy = LazyOcr(make)
    assert made == []
    assert lazy.recognise(PAGE) == lazy.recognise(PAGE) == [GOOD]
    assert len(made) == 1


TEXT = "The harbour opens at seven"
FONT = ImageFont.load_default(size=12 * 150 / 72)


@pytest.fixture(scope="module")
def rapid(tmp_path_factory: pytest.TempPathFactory) -> RapidOcrEngine:
    engine = make_engine("rapid", threads=1, home=Path(tmp_path_factory.getbasetemp()))
    assert isinstance(engine, RapidOcrEngine)
    return engine


def rendered_line() -> Image.Image:
    """A line of 12-point text as a scan at 150 dpi shows it."""
    image = Image.new("RGB", (440, 400), "white")
    ImageDraw.Draw(image).text((40, 60), TEXT, font=FONT, fill="black")
    return image


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_real_engine_reads_a_line_whichever_way_it_lies(turn: int, rapid: RapidOcrEngine) -> None:
    """Behaviour 11: sideways scans read upright."""
    lying = rendered_line().rotate(turn, expand=True)  # anticlockwise
    page = read_upright(rapid, np.asarray(lying))
    assert page.rotation == turn
    [line] = page.lines
    assert line.text == TEXT
    assert line.confidence > 0.9
    ink = FONT.getbbox(TEXT)
    shown = (40 + ink[0], 60 + ink[1], 40 + ink[2], 60 + ink[3])
    assert line.bbox == pytest.approx(shown, abs=10)


def test_real_engine_finds_nothing_on_a_white_page(rapid: RapidOcrEngine) -> None:
    assert rapid.recognise(np.full((300, 300, 3), 255, dtype=np.uint8)) == []


def test_engines_keep_to_their_threads(rapid: RapidOcrEngine) -> None:
    import cv2

    options = rapid._detector.session.session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    assert cv2.getNumThreads() == 1
