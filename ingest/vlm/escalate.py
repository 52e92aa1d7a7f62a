"""Which pages go on from OCR to a vision model: a pure function, with named thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ingest.parsed import Line

Action = Literal["keep", "escalate", "keep_degraded"]

_CELL_CHARACTERS = 24  # longer pieces beside each other are columns of prose


@dataclass(frozen=True, slots=True)
class EscalationThresholds:
    """Borders of the decision. Confidences and shares run from 0 to 1.

    PP-OCRv6 is very sure of itself: it has 2 % of the characters wrong at a mean of 0.98, and most
    of them at 0.60. A line below `low_confidence` belongs to the low tail. `table_rows` are rows
    of cells that OCR left without their table.
    """

    mean_confidence: float = 0.95
    low_confidence: float = 0.80
    low_tail_share: float = 0.15
    table_rows: int = 3
    row_cells: int = 3
    unread_ink_share: float = 0.35


@dataclass(frozen=True, slots=True)
class OcrSigns:
    """What OCR left behind on a page.

    `mean_confidence` is by characters, None where nothing was recognised; `low_tail_share` the
    characters in lines of low confidence; `flat_table_rows` rows of cells outside any table;
    `unread_ink_share` the ink in no line (figures, handwriting).
    """

    mean_confidence: float | None
    low_tail_share: float
    flat_table_rows: int
    unread_ink_share: float


@dataclass(frozen=True, slots=True)
class Escalation:
    """What to do with the page and why, in words."""

    action: Action
    reason: str


def decide_escalation(
    signs: OcrSigns,
    *,
    refusal: str | None,
    thresholds: EscalationThresholds,
) -> Escalation:
    """Keep the OCR text, escalate, or keep it as second best.

    `refusal` says why no model can be asked (none configured, no budget, not answering); None if
    one can.
    """
    need = reason_to_escalate(signs, thresholds)
    if need is None:
        return Escalation("keep", "the OCR is sure of the page")
    if refusal is not None:
        return Escalation("keep_degraded", f"{need}; {refusal}")
    return Escalation("escalate", need)


def reason_to_escalate(signs: OcrSigns, thresholds: EscalationThresholds) -> str | None:
    """Why OCR may not be enough for this page; None if it is."""
    unread = signs.unread_ink_share >= thresholds.unread_ink_share
    low_tail = signs.low_tail_share >= thresholds.low_tail_share
    if signs.mean_confidence is None:
        return "the OCR found no text where there is ink" if unread else None
    if signs.mean_confidence < thresholds.mean_confidence:
        return f"the OCR's mean confidence is {signs.mean_confidence:.2f}"
    if low_tail:
        what = "handwriting" if unread else "poor print"
        return f"{signs.low_tail_share:.0%} of the text is of low confidence ({what})"
    if signs.flat_table_rows >= thresholds.table_rows:
        return f"{signs.flat_table_rows} rows look like a table that OCR flattened"
    if unread:
        return f"{signs.unread_ink_share:.0%} of the ink is in no line (a figure)"
    return None


def ocr_signs(
    lines: Sequence[Line],
    *,
    tables: bool,
    unread_ink_share: float,
    thresholds: EscalationThresholds,
) -> OcrSigns:
    """Signs of a page from its OCR lines. `tables`: its tables were found already."""
    sure = [(line.confidence, len(line.text)) for line in lines if line.confidence is not None]
    characters = sum(length for _, length in sure)
    low = sum(length for confidence, length in sure if confidence < thresholds.low_confidence)
    total = sum(confidence * length for confidence, length in sure)
    return OcrSigns(
        mean_confidence=total / characters if characters else None,
        low_tail_share=low / characters if characters else 0.0,
        flat_table_rows=0 if tables else flat_table_rows(lines, thresholds.row_cells),
        unread_ink_share=unread_ink_share,
    )


def flat_table_rows(lines: Sequence[Line], row_cells: int) -> int:
    """Rows of at least `row_cells` short pieces of text beside each other."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.bbox.y0 + line.bbox.y1):
        if rows and _beside(rows[-1][0], line):
            rows[-1].append(line)
        else:
            rows.append([line])
    return sum(len(row) >= row_cells and _are_cells(row) for row in rows)


def _beside(first: Line, line: Line) -> bool:
    middle = (line.bbox.y0 + line.bbox.y1) / 2
    return first.bbox.y0 <= middle <= first.bbox.y1


def _are_cells(row: Sequence[Line]) -> bool:
    return sum(len(line.text) for line in row) <= _CELL_CHARACTERS * len(row)
