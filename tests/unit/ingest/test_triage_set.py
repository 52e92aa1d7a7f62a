"""Triage over a labelled set of generated pages: signals and decision only, no recognition."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from ingest.ocr import OcrLine, Pixels
from ingest.pdf.base import PdfEngine
from ingest.readers import pdf as reader
from ingest.readers.base import ReadContext
from ingest.readers.pdf import read_pdf
from ingest.triage import Thresholds
from ragplane.core.schema import Page, Route
from tests.unit.ingest.triage_pages import READABLE, PageKind
from tests.unit.ingest.triage_scans import UNREADABLE

KINDS = (*READABLE, *UNREADABLE)
PAGES_OF_A_KIND = 6
ACCURACY = 0.97


class NoOcr:
    """Never asked: the pages are measured, not read."""

    def recognise(self, image: Pixels) -> list[OcrLine]:
        raise AssertionError("a page was recognised")


@pytest.fixture(scope="module")
def labelled() -> list[tuple[PageKind, bytes]]:
    return [
        (kind, kind.make(Random(f"{kind.name} {seed}")))
        for kind in KINDS
        for seed in range(PAGES_OF_A_KIND)
    ]


def measured(content: bytes, engine: PdfEngine) -> Page:
    context = ReadContext("page.pdf", NoOcr(), Thresholds(), pdf_engine=engine)
    [page] = read_pdf(content, context).pages
    return page


@pytest.mark.parametrize("engine", ["mupdf", "pdfium"])
def test_triage_sends_pages_of_every_kind_the_right_way(
    engine: PdfEngine,
    labelled: list[tuple[PageKind, bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Behaviour 1."""
    monkeypatch.setattr(reader, "_read", lambda *_: reader._Body())
    wrong: list[tuple[str, Route, str]] = []
    for kind, content in labelled:
        page = measured(content, engine)
        if page.route != kind.route:
            wrong.append((kind.name, page.route, page.reason))
    assert len(labelled) >= 200
    assert len(KINDS) >= 20
    assert len(wrong) <= (1 - ACCURACY) * len(labelled), wrong
    by_kind = Counter(name for name, *_ in wrong)
    assert all(2 * count < PAGES_OF_A_KIND for count in by_kind.values()), by_kind
