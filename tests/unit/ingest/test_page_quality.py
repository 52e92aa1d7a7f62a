"""Error rates of the OCR route on pages with known truth, clean and after a scanner's wear."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from ingest.ocr import EngineName, OcrEngine, Pixels, make_engine
from ingest.scanned import Scan, read_page
from ragplane.core.errors import ConfigError
from tests.unit.ingest.measure import adjacent_pairs_kept, cells_f1, character_error_rate
from tests.unit.ingest.pages import Style, document
from tests.unit.ingest.scans import NOISY_SKEWED, Wear, render, worn

DPI = 150.0
STYLES = (
    Style(font="tiro", bold="tibo", language="de"),
    Style(columns=2, size_points=9, height_points=500),
    Style(columns=3, size_points=8, height_points=500),
    Style(font="cour", bold="cobo", height_points=500),
)
CLEAN_LIMIT, WORN_LIMIT = 0.005, 0.02


@dataclass(frozen=True)
class Quality:
    """Over all pages: character error rate, and share of neighbouring words kept."""

    error_rate: float
    pairs_kept: float


def quality(engine: OcrEngine, wear: Wear) -> Quality:
    """Reads the page of each style. The rates are means, the pages weighing the same."""
    rates, pairs = [], []
    for seed, style in enumerate(STYLES):
        pdf, [truth] = document(seed, style=style, furniture=False)
        [image] = render(pdf, DPI)
        read = text_of(read_image(engine, worn(image, wear, seed), style))
        rates.append(character_error_rate(truth.every_text, read))
        pairs.append(adjacent_pairs_kept(truth.every_text, read))
    return Quality(sum(rates) / len(rates), sum(pairs) / len(pairs))


def read_image(engine: OcrEngine, image: Pixels, style: Style) -> Scan:
    size = style.width_points, style.height_points
    return read_page(engine, lambda _: image, size, 12_000_000, 1, finest_dpi=DPI)


def text_of(scan: Scan) -> str:
    return "\n".join(line.text for paragraph in scan.paragraphs for line in paragraph)


def test_truth_is_what_the_pdf_says() -> None:
    """The yardstick itself: a PDF library reads the very words, and the same number of pages."""
    import pymupdf

    pdf, truths = document(5, pages=3, style=Style(columns=2), tables="ruled")
    with pymupdf.open(stream=pdf, filetype="pdf") as opened:
        read = [sorted(page.get_text().split()) for page in opened]
    assert read == [sorted(truth.every_text.split()) for truth in truths]
    kinds = {"heading", "paragraph", "table", "furniture"}
    assert all({item.kind for item in truth.items} == kinds for truth in truths)


@pytest.fixture(scope="module", params=["rapid", "paddle"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OcrEngine:
    name: EngineName = request.param
    try:
        return make_engine(name, 1, tmp_path_factory.mktemp("home"))
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("wear", "limit"), [(Wear(), CLEAN_LIMIT), (NOISY_SKEWED, WORN_LIMIT)])
def test_error_rate_and_reading_order(engine: OcrEngine, wear: Wear, limit: float) -> None:
    """Behaviours 12 and 15: one to three columns, accents, numbers; clean and worn."""
    found = quality(engine, wear)
    assert found.error_rate <= limit
    assert found.pairs_kept >= 0.99


@pytest.mark.parametrize(("kind", "least"), [("ruled", 0.95), ("unruled", 0.85)])
def test_cells_of_a_scanned_table(
    kind: Literal["ruled", "unruled"], least: float, engine: OcrEngine
) -> None:
    """Behaviour 13: on a noisy, skewed page."""
    style = Style(height_points=420)
    pdf, [truth] = document(12, style=style, tables=kind, furniture=False)
    scan = read_image(engine, worn(render(pdf, DPI)[0], NOISY_SKEWED), style)
    expected = [row for item in truth.of("table") for row in item.rows]
    assert cells_f1(expected, [row for table in scan.tables for row in table.rows]) >= least


def test_paddle_models_are_made_once_and_without_a_network(tmp_path: Path) -> None:
    pytest.importorskip("paddleocr", reason="needs the extra ragplane[paddle]")
    from ingest.ocr.paddle import prepare_models

    models = prepare_models(tmp_path)
    made = (models.recognition / "inference.yml").stat().st_mtime_ns
    assert sorted(file.name for file in models.detection.iterdir()) == [
        "inference.onnx",
        "inference.yml",
    ]
    assert prepare_models(tmp_path) == models
    assert (models.recognition / "inference.yml").stat().st_mtime_ns == made
