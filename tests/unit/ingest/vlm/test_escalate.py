"""Which pages go on from OCR to a vision model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingest.parsed import Line
from ingest.vlm.escalate import (
    EscalationThresholds,
    OcrSigns,
    decide_escalation,
    flat_table_rows,
    ocr_signs,
)
from ragplane.core.schema import BBox
from tests.unit.ingest.vlm.pages import lines_of

LIMITS = EscalationThresholds()
GOOD = OcrSigns(mean_confidence=0.97, low_tail_share=0.0, flat_table_rows=0, unread_ink_share=0.1)
NEEDY = [
    (replace(GOOD, mean_confidence=0.80), "mean confidence is 0.80"),
    (replace(GOOD, low_tail_share=0.2), "20% of the text is of low confidence (poor print)"),
    (replace(GOOD, low_tail_share=0.2, unread_ink_share=0.5), "(handwriting)"),
    (replace(GOOD, flat_table_rows=3), "3 rows look like a table"),
    (replace(GOOD, unread_ink_share=0.5), "50% of the ink is in no line (a figure)"),
    (OcrSigns(None, 0.0, 0, 0.9), "no text where there is ink"),
]


@pytest.mark.parametrize(("signs", "reason"), NEEDY)
def test_a_page_that_ocr_reads_badly_escalates(signs: OcrSigns, reason: str) -> None:
    """Behaviour 3."""
    decision = decide_escalation(signs, refusal=None, thresholds=LIMITS)
    assert decision.action == "escalate"
    assert reason in decision.reason


@pytest.mark.parametrize(("signs", "reason"), NEEDY)
def test_without_a_model_or_budget_the_ocr_text_is_kept_and_it_is_said(
    signs: OcrSigns, reason: str
) -> None:
    """Behaviour 3."""
    decision = decide_escalation(signs, refusal="no budget is left", thresholds=LIMITS)
    assert decision.action == "keep_degraded"
    assert reason in decision.reason
    assert decision.reason.endswith("; no budget is left")


@pytest.mark.parametrize("signs", [GOOD, OcrSigns(None, 0.0, 0, 0.0)])
@pytest.mark.parametrize("refusal", [None, "no model"])
def test_a_page_that_ocr_reads_well_and_a_blank_one_are_kept(
    signs: OcrSigns, refusal: str | None
) -> None:
    decision = decide_escalation(signs, refusal=refusal, thresholds=LIMITS)
    assert decision.action == "keep"


def test_the_borders_are_the_thresholds() -> None:
    at_border = replace(GOOD, mean_confidence=LIMITS.mean_confidence)
    for thresholds, action in [
        (LIMITS, "keep"),
        (replace(LIMITS, mean_confidence=0.96), "escalate"),
    ]:
        decision = decide_escalation(at_border, refusal=None, thresholds=thresholds)
        assert decision.action == action


def cells(*texts: str, y: float, width: float = 80) -> list[Line]:
    """Pieces of text beside each other."""
    return [
        Line(
            text, BBox(72 + 150 * column, y, 72 + 150 * column + width, y + 12), 12.0, confidence=1
        )
        for column, text in enumerate(texts)
    ]


def test_rows_of_cells_are_a_table_and_columns_of_prose_are_not() -> None:
    """Behaviour 3."""
    table = [line for row in range(4) for line in cells("pier", "12 m", "318.40", y=72 + 20 * row)]
    prose = [
        line
        for row in range(9)
        for line in cells(*["a line of prose, as wide as its column"] * 3, y=300 + 14 * row)
    ]
    assert flat_table_rows([*table, *prose], LIMITS.row_cells) == 4
    assert flat_table_rows(lines_of(), LIMITS.row_cells) == 0


def test_signs_of_lines() -> None:
    """Behaviour 3."""
    lines = [*lines_of(["ninety characters" * 3], 1.0), *lines_of(["seventeen letters"], 0.6)]
    signs = ocr_signs(lines, tables=False, unread_ink_share=0.3, thresholds=LIMITS)
    assert signs.mean_confidence == pytest.approx(0.9)
    assert signs.low_tail_share == pytest.approx(0.25)
    assert signs.unread_ink_share == 0.3
    table = [line for row in range(4) for line in cells("a", "b", "c", y=72 + 20 * row)]
    found = ocr_signs(table, tables=True, unread_ink_share=0, thresholds=LIMITS)
    assert found.flat_table_rows == 0, "a table that was found is not flattened"
