"""From recognised lines to paragraphs and tables in points, at the dpi that a page needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ingest.ocr import OcrLine, Pixels
from ingest.parsed import Line
from ingest.scanned import Scan, read_page, recognised
from ragplane.core.errors import StageError
from ragplane.core.schema import BBox


class Lines:
    """Finds the given lines on every image."""

    def __init__(self, lines: Sequence[OcrLine]) -> None:
        self.lines = lines

    def recognise(self, image: Pixels) -> list[OcrLine]:
        return list(self.lines)


IMAGE = np.zeros((1600, 1200, 3), dtype=np.uint8)


def found(text: str, x: float, y: float, *, height: float = 30, score: float = 0.95) -> OcrLine:
    return OcrLine(text, BBox(x, y, x + 15 * len(text), y + height), score)


def scan_of(*lines: OcrLine, dpi: float = 144) -> Scan:
    return recognised(Lines(lines), IMAGE, dpi, 1)


def paragraphs_of(*lines: OcrLine) -> list[list[Line]]:
    return [list(paragraph) for paragraph in scan_of(*lines).paragraphs]


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


def test_close_lines_are_one_paragraph_and_a_gap_ends_it() -> None:
    lines = [found("first", 100, 200), found("second", 100, 240), found("third", 100, 320)]
    assert texts(paragraphs_of(*reversed(lines))) == [["first", "second"], ["third"]]


def test_larger_line_is_a_paragraph_of_its_own() -> None:
    lines = [found("Heading", 100, 100, height=60), found("body", 100, 170)]
    assert texts(paragraphs_of(*lines)) == [["Heading"], ["body"]]


def test_columns_are_read_one_after_the_other() -> None:
    """Behaviour 12."""
    left = [found("left column of text", 100, y) for y in (200, 240)]
    right = [found("right column of text", 700, y) for y in (205, 245)]
    assert texts(paragraphs_of(*right, *left)) == [
        ["left column of text"] * 2,
        ["right column of text"] * 2,
    ]


def test_doubtful_lines_are_left_out_noted_and_count_as_doubt() -> None:
    """Behaviour 3: what was lost lowers the confidence of the page."""
    scan = scan_of(found("sure thing", 100, 200, score=1.0), found("smudges...", 100, 240, score=0))
    assert texts(scan.paragraphs) == [["sure thing"]]
    assert scan.confidence == 0.5
    [note] = scan.notes
    assert (note.kind, note.text) == ("degraded", "lines left out that OCR could not read: 1")


def test_lines_that_could_not_be_read_count_by_the_room_they_take() -> None:
    """Behaviour 3: a page half in a script that the engine does not know is no sure page."""
    unread = OcrLine("", BBox(100, 240, 250, 270), 0.0)
    scan = scan_of(found("sure thing", 100, 200, score=1.0), unread)
    assert texts(scan.paragraphs) == [["sure thing"]]
    assert scan.confidence is not None
    assert scan.confidence == pytest.approx(10 / 23, abs=0.01)
    assert [note.text for note in scan.notes] == ["lines left out that OCR could not read: 1"]
    assert scan.line_height_pixels == 30


def test_page_without_text_has_no_confidence_and_no_notes() -> None:
    scan = scan_of()
    assert (scan.paragraphs, scan.tables, scan.confidence, scan.notes) == ((), (), None, ())


def test_error_that_an_engine_wrapped_is_named_by_its_cause() -> None:
    """Behaviour 25: as RapidOCR raises, with a traceback for a message."""

    class Wrapping:
        def recognise(self, image: Pixels) -> list[OcrLine]:
            try:
                raise MemoryError("no room for the page")
            except MemoryError as error:
                raise RuntimeError("Traceback (most recent call last):\n  ...") from error

    with pytest.raises(StageError, match="MemoryError: no room for the page"):
        recognised(Wrapping(), np.zeros((10, 10, 3), np.uint8), 72, 7)


def test_engine_that_fails_is_named_with_its_page() -> None:
    class Broken:
        def recognise(self, image: Pixels) -> list[OcrLine]:
            raise OSError("no model file")

    with pytest.raises(StageError, match="OSError: no model file") as caught:
        recognised(Broken(), np.zeros((10, 10, 3), np.uint8), 72, 7)
    assert (caught.value.stage, caught.value.page) == ("ocr", 7)


class SmallPrint:
    """Reads the better the finer the image: a line of `points` 12 is doubtful at 150 dpi."""

    def __init__(self, coarse: float, fine: float) -> None:
        self.scores = {150: coarse, 300: fine}
        self.dpi: list[float] = []

    def render(self, dpi: float) -> Pixels:
        self.dpi.append(dpi)
        return np.zeros((round(10 * dpi), round(8 * dpi), 3), dtype=np.uint8)

    def recognise(self, image: Pixels) -> list[OcrLine]:
        dpi = image.shape[0] / 10
        score = self.scores[150 if dpi < 200 else 300]
        return [found(f"read at {dpi:.0f}", 0.5 * dpi, dpi, height=0.1 * dpi, score=score)]


def read(engine: SmallPrint, max_pixels: int = 12_000_000, **limit: float) -> str:
    scan = read_page(engine, engine.render, (576.0, 720.0), max_pixels, 1, **limit)
    return scan.paragraphs[0][0].text


def test_doubtful_small_print_is_read_again_at_more_dots() -> None:
    """Behaviour 10: the dpi follows the page, within the budget of pixels."""
    engine = SmallPrint(0.8, 0.97)
    assert read(engine) == "read at 300"
    assert engine.dpi == [150, 300]


def test_better_of_two_readings_is_kept() -> None:
    assert read(SmallPrint(0.8, 0.7)) == "read at 150"


def test_page_that_reads_well_is_read_once() -> None:
    engine = SmallPrint(0.97, 0.99)
    assert read(engine) == "read at 150"
    assert engine.dpi == [150]


def test_no_image_is_finer_than_the_source_or_over_the_budget() -> None:
    """Behaviour 10."""
    engine = SmallPrint(0.8, 0.97)
    assert read(engine, finest_dpi=120) == "read at 120"
    assert engine.dpi == [120]
    assert read(SmallPrint(0.8, 0.97), finest_dpi=200) == "read at 200"
    assert read(SmallPrint(0.8, 0.97), max_pixels=80 * 100 * 100) == "read at 100"


def grid(*cells: str) -> Scan:
    """A page with a grid of three by three, of 200 x 100 pixels a cell, with these texts."""
    image = np.full((600, 800, 3), 255, dtype=np.uint8)
    for step in range(4):
        image[100 + 100 * step :, 100:700][:2] = 0
        image[100:402, 100 + 200 * step :][:, :2] = 0
    lines = [
        found(cell, 110 + 200 * (at % 3), 130 + 100 * (at // 3))
        for at, cell in enumerate(cells)
        if cell
    ]
    return recognised(Lines(lines), image, 150, 1)


def test_ruled_table_is_found_in_the_image() -> None:
    """Behaviour 13."""
    cells = ("Berth", "State", "Since", "Skagen", "open", "1950", "Ystad", "closed", "1960")
    [table] = grid(*cells).tables
    assert table.rows == (cells[:3], cells[3:6], cells[6:])
    assert table.bbox == pytest.approx((48, 48, 337, 193), abs=1)


def test_grid_that_is_mostly_empty_is_no_table() -> None:
    scan = grid("0", "", "", "", "a", "", "", "", "b")
    assert scan.tables == ()
    assert len(scan.paragraphs) > 0
