"""Pages in scripts that the OCR models do not know: unsure, and said so, never taken for text."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ingest.ocr import OcrEngine, Pixels, make_engine
from ingest.parsed import RawPage
from ingest.readers.base import ReadContext
from ingest.readers.pdf import read_pdf
from ingest.triage import Thresholds
from ingest.vlm.session import VlmSession
from ragplane.core.schema import Page
from tests.unit.ingest.scans import NOISY_SKEWED, Wear, render, scanned_pdf, worn
from tests.unit.ingest.triage_pages import Draw, drawn, script

DPI = 150.0
CLEAN = Wear()
UNKNOWN = {
    "Korean": script("항구는 매일 아침 일곱 시에 문을 연다.", "위원회는 새 부두를 승인했다."),
    "Arabic": script("يفتح الميناء كل يوم في الساعة السابعة.", "وافقت اللجنة على الرصيف الجديد."),
    "Hebrew": script("הנמל פתוח כל יום.", "הוועדה אישרה את הרציף החדש."),
    "Cyrillic": script("Начальник порта записал прибытие.", "Туман задержал паром."),
    "Hindi": script("बंदरगाह हर दिन खुलता है।", "समिति ने नए घाट को मंजूरी दी।"),
}
KNOWN = script("The harbour opens at seven.", "Komisja zatwierdziła nowe nabrzeże.")


def mixed(page: Any, random: Random) -> None:
    """A line in each script."""
    texts = "The harbour opens at seven every day.", "항구는 매일 아침 일곱 시에 문을 연다."
    page.insert_htmlbox((72, 72, 520, 760), "".join(f"<p>{text}</p>" for text in texts))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> OcrEngine:
    return make_engine("rapid", 1, tmp_path_factory.mktemp("home"))


class Second:
    """A vision model that remembers what it is asked to read."""

    def __init__(self) -> None:
        self.asked: list[RawPage] = []

    def improve(self, page: RawPage, image: Pixels) -> RawPage:
        self.asked.append(page)
        return page


def scanned(draw: Draw, wear: Wear = CLEAN) -> bytes:
    [image] = render(drawn(draw)(Random(3)), DPI)
    return scanned_pdf([worn(image[: image.shape[0] // 3], wear)], DPI)


def read(content: bytes, engine: OcrEngine) -> Page:
    context = ReadContext("a", engine, Thresholds(), vlm=VlmSession(None))
    [page] = read_pdf(content, context).pages
    return page


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "wear"), [*((name, CLEAN) for name in UNKNOWN), ("Cyrillic", NOISY_SKEWED)]
)
def test_page_in_an_unknown_script_is_unsure_and_says_so(
    name: str, wear: Wear, engine: OcrEngine
) -> None:
    """Behaviour 3: such a page is one for the vision model, or degraded where there is none."""
    page = read(scanned(UNKNOWN[name], wear), engine)
    assert page.confidence is not None
    assert page.confidence < 0.9
    assert any(note.kind == "degraded" and "vlm:" in note.text for note in page.notes)


def test_page_in_a_known_script_is_sure(engine: OcrEngine) -> None:
    page = read(scanned(KNOWN), engine)
    assert page.confidence is not None
    assert page.confidence > 0.95
    assert page.notes == ()


def test_lines_in_an_unknown_script_among_known_ones_are_told(engine: OcrEngine) -> None:
    """Behaviour 3."""
    page = read(scanned(mixed), engine)
    assert "The harbour opens at seven every day." in page.text
    assert page.confidence is not None
    assert page.confidence < 0.9
    assert any("lines left out that OCR could not read" in note.text for note in page.notes)
