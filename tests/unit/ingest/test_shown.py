"""Boxes of turned and leaning pages, drawn on the page that a viewer shows."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from ingest.ocr import OcrEngine, Pixels, make_engine
from ingest.parsed import ParsedDocument, RawPage
from ingest.readers.base import ReadContext
from ingest.shown import as_shown, turned_size
from ingest.sniff import reader_for
from ingest.triage import Thresholds
from ragplane.core.schema import BBox, Block, Page, PageSignals
from tests.unit.ingest.scans import Wear, scanned_pdf, worn

DPI = 150
SIDES = (900, 700)
WORDS = {  # where each is written on the page before it is turned
    "Lighthouse": (60, 50),
    "Harbour": (520, 60),
    "Anchorage": (330, 300),
    "Pilotage": (70, 600),
    "Quayside": (560, 590),
}
FONT = ImageFont.load_default(size=36)


def written(*words: str) -> Pixels:
    image = Image.new("RGB", SIDES, "white")
    for word in words:
        ImageDraw.Draw(image).text(WORDS[word], word, font=FONT, fill="black")
    return np.asarray(image)


def lying(image: Pixels, turn: int, skew_degrees: float) -> Pixels:
    """The page as a scanner sees it: leaning, then needing `turn` degrees clockwise."""
    leaning = worn(image, Wear(skew_degrees=skew_degrees))
    return np.ascontiguousarray(np.rot90(leaning, k=turn // 90))


def ink(image: Pixels) -> BBox:
    """The box around everything dark, in points."""
    rows, columns = np.nonzero(image.min(axis=2) < 128)
    edges = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    return BBox(*(float(edge) * 72 / DPI for edge in edges))


def encoded(image: Pixels, kind: str) -> bytes:
    if kind == "PDF":
        return scanned_pdf([image], DPI)
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, kind, dpi=(DPI, DPI))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> OcrEngine:
    return make_engine("rapid", 1, tmp_path_factory.mktemp("home"))


def read(content: bytes, engine: OcrEngine) -> ParsedDocument:
    return reader_for(content, "a")(content, ReadContext("a", engine, Thresholds()))


def box_of(word: str, page: Page) -> BBox:
    [box] = [block.bbox for block in page.blocks if word in block.text]
    assert box is not None
    return box


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("turn", "skew", "kind"),
    [
        (0, 3.0, "PDF"),
        (90, 0.0, "PDF"),
        (90, -2.0, "PNG"),
        (180, 0.0, "PNG"),
        (270, 4.0, "PNG"),
    ],
)
def test_box_of_each_word_lies_on_its_ink_however_the_page_lies(
    turn: int, skew: float, kind: str, engine: OcrEngine
) -> None:
    """Behaviour 11: boxes are those of the page as shown."""
    image = lying(written(*WORDS), turn, skew)
    [page] = read(encoded(image, kind), engine).pages
    shown = image.shape[1] * 72 / DPI, image.shape[0] * 72 / DPI
    assert (page.width_points, page.height_points) == pytest.approx(shown, abs=1)
    assert page.rotation == turn
    for word in WORDS:
        box, seen = box_of(word, page), ink(lying(written(word), turn, skew))
        assert box.x0 - 1 <= seen.x0 and box.y0 - 1 <= seen.y0, word
        assert box.x1 + 1 >= seen.x1 and box.y1 + 1 >= seen.y1, word
        assert box == pytest.approx(seen, abs=12), word


def raw(turn: int, skew_degrees: float = 0.0) -> RawPage:
    signals = PageSignals(0, 0, 0.0, 1.0, 0)
    return RawPage(1, 400, 300, turn, "ocr", "", signals, 0.0, turn=turn, skew_degrees=skew_degrees)


@pytest.mark.parametrize(
    ("turn", "box"),
    [
        (0, (10, 20, 60, 30)),
        (90, (20, 340, 30, 390)),
        (180, (340, 270, 390, 280)),
        (270, (270, 10, 280, 60)),
    ],
)
def test_quarter_turns_are_taken_back(turn: int, box: tuple[float, ...]) -> None:
    """Behaviour 11: the box of a page laid upright, near its upper left corner."""
    [block, placeless] = as_shown(
        [Block("paragraph", "a", BBox(10, 20, 60, 30)), Block("paragraph", "b")], raw(turn)
    )
    assert block.bbox == pytest.approx(box)
    assert placeless.bbox is None


def test_lean_is_taken_back_about_the_middle() -> None:
    """Behaviour 11."""
    left, right = as_shown(
        [
            Block("paragraph", "left", BBox(0, 149, 2, 151)),
            Block("paragraph", "right", BBox(398, 149, 400, 151)),
        ],
        raw(0, skew_degrees=3.0),
    )
    assert left.bbox is not None and right.bbox is not None
    assert right.bbox.y1 - left.bbox.y1 == pytest.approx(398 * np.sin(np.radians(3.0)), abs=0.1)


@pytest.mark.parametrize(
    ("turn", "size"), [(0, (3, 4)), (90, (4, 3)), (180, (3, 4)), (270, (4, 3))]
)
def test_size_of_a_turned_page(turn: int, size: tuple[float, float]) -> None:
    """Behaviour 11."""
    assert turned_size(3, 4, turn) == size
