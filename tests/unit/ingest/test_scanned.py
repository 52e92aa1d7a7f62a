"""From recognised lines to paragraphs in points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ingest.ocr import OcrLine, Pixels
from ingest.parsed import Line
from ingest.scanned import read_scan, upright_size
from ragplane.core.errors import StageError
from ragplane.core.schema import BBox


class Lines:
    """Finds the given lines on every image."""

    def __init__(self, lines: Sequence[OcrLine]) -> None:
        self.lines = lines

    def recognise(self, image: Pixels) -> list[OcrLine]:
        return list(self.lines)


def found(text: str, x: float, y: float, *, height: float = 30, score: float = 0.95) -> OcrLine:
    return OcrLine(text, BBox(x, y, x + 15 * len(text), y + height), score)


def paragraphs_of(*lines: OcrLine, dpi: float = 144) -> list[list[Line]]:
    image = np.zeros((1600, 1200, 3), dtype=np.uint8)
    paragraphs, rotation = read_scan(Lines(lines), image, dpi, 1)
    assert rotation == 0
    return [list(paragraph) for paragraph in paragraphs]


def texts(paragraphs: Sequence[Sequence[Line]]) -> list[list[str]]:
    return [[line.text for line in paragraph] for paragraph in paragraphs]


def test_boxes_are_scaled_to_points() -> None:
    [[line]] = paragraphs_of(found("scaled", 100, 200, height=32))
    assert line.bbox == BBox(50, 100, 95, 116)
    assert line.font_size_points == pytest.approx(12)
    assert line.confidence == 0.95


def test_pieces_of_one_row_are_joined_with_the_lower_confidence() -> None:
    [[line]] = paragraphs_of(found("joined", 200, 202, score=0.8), found("pieces", 100, 200))
    assert line.text == "pieces joined"
    assert line.confidence == 0.8
    assert line.bbox == BBox(50, 100, 145, 116)


def test_pieces_far_apart_on_a_row_stay_apart() -> None:
    assert texts(paragraphs_of(found("left", 100, 200), found("right", 700, 200))) == [
        ["left"],
        ["right"],
    ]


def test_close_lines_are_one_paragraph_and_a_gap_ends_it() -> None:
    lines = [found("first", 100, 200), found("second", 100, 240), found("third", 100, 320)]
    assert texts(paragraphs_of(*reversed(lines))) == [["first", "second"], ["third"]]


def test_larger_line_is_a_paragraph_of_its_own() -> None:
    lines = [found("Heading", 100, 100, height=60), found("body", 100, 170)]
    assert texts(paragraphs_of(*lines)) == [["Heading"], ["body"]]


def test_columns_are_read_one_after_the_other() -> None:
    left = [found("left column text", 100, y) for y in (200, 240)]
    right = [found("right column text", 700, y) for y in (205, 245)]
    assert texts(paragraphs_of(*right, *left)) == [
        ["left column text"] * 2,
        ["right column text"] * 2,
    ]


def test_doubtful_lines_are_left_out() -> None:
    assert texts(paragraphs_of(found("sure", 100, 200), found("smudge", 100, 240, score=0.3))) == [
        ["sure"]
    ]


@pytest.mark.parametrize(
    ("rotation", "size"), [(0, (3, 4)), (90, (4, 3)), (180, (3, 4)), (270, (4, 3))]
)
def test_size_of_a_turned_page(rotation: int, size: tuple[float, float]) -> None:
    assert upright_size(3, 4, rotation) == size


def test_engine_that_fails_is_named_with_its_page() -> None:
    class Broken:
        def recognise(self, image: Pixels) -> list[OcrLine]:
            raise OSError("no model file")

    with pytest.raises(StageError, match="OSError: no model file") as caught:
        read_scan(Broken(), np.zeros((10, 10, 3), np.uint8), 72, 7)
    assert (caught.value.stage, caught.value.page) == ("ocr", 7)
