"""The triage ledger in numbers, and its replay under other thresholds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from ingest.ledger.records import PageRow
from ingest.triage import Thresholds
from pipelines.triage import replay, triage_report
from ragplane.core.errors import StageError
from ragplane.core.schema import PageSignals

GOOD = PageSignals(
    characters=900, words=150, unmapped_share=0.0, image_coverage=0.0, drawings=0, columns=2
)
SCAN = PageSignals(characters=0, words=0, unmapped_share=0.0, image_coverage=0.95, drawings=0)
PAGE = PageRow("file:///a.pdf", 1, "text", "the text layer is good", GOOD, 0.5, 0, None, None)
ROWS = [
    PAGE,
    replace(PAGE, number=2, seconds=0.25, reason="a text layer lies over an image"),
    replace(PAGE, number=3, route="ocr", reason="scan", signals=SCAN, seconds=2, confidence=0.9),
    replace(PAGE, number=4, route="ocr", reason="scan", signals=SCAN, seconds=3, confidence=0.7),
    replace(PAGE, number=5, route="vlm", reason="table", signals=SCAN, vlm_tokens=1200),
    replace(PAGE, number=6, route="ocr", signals=SCAN, error=StageError("ocr", "no memory")),
]


async def rows() -> AsyncIterator[PageRow]:
    for row in ROWS:
        yield row


async def test_costs_are_counted_by_route() -> None:
    """Behaviour 1: route, reason, cost and outcome of every page."""
    report = (await triage_report(rows())).as_json()
    assert list(report["routes"]) == ["ocr", "text", "vlm"]
    ocr, text, vlm = report["routes"].values()
    assert (text["pages"], text["seconds"], text["confidence"]) == (2, 0.75, None)
    assert text["reasons"] == {
        "the text layer is good": 1,
        "a text layer lies over an image": 1,
    }
    assert (ocr["pages"], ocr["failed"], ocr["confidence"]) == (3, 1, 0.8)
    assert vlm["vlm_tokens"] == 1200
    assert (report["changes"], report["changed"]) == ({}, [])


async def test_other_thresholds_are_tried_on_the_signals_that_were_stored() -> None:
    """Behaviour 1: replayed without parsing again."""
    report = (await triage_report(rows(), Thresholds(layout_columns=2))).as_json()
    assert report["changes"] == {"text -> layout": 2}
    assert [page["page"] for page in report["changed"]] == [1, 2]
    assert report["changed"][0]["reason"] == "2 columns: perhaps a table without rules"
    assert (await triage_report(rows(), Thresholds())).changed == []


def test_a_page_of_the_vision_model_came_by_the_ocr_and_would_still() -> None:
    """Behaviour 1."""
    assert replay(ROWS[4], Thresholds()) is None
    changed = replay(ROWS[4], Thresholds(blank_image_coverage=1.0))
    assert changed is not None
    assert (changed.before, changed.after) == ("vlm", "blank")
