"""The triage ledger of a corpus in numbers, and what other thresholds would change."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from ingest.ledger.records import PageRow
from ingest.triage import Thresholds, decide
from ragplane.core.schema import Route


@dataclass(slots=True)
class RouteCost:
    """What the pages of one route took."""

    pages: int = 0
    failed: int = 0
    seconds: float = 0.0
    vlm_tokens: int = 0
    confidences: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def count(self, row: PageRow) -> None:
        """Add a page."""
        self.pages += 1
        self.failed += row.error is not None
        self.seconds += row.seconds
        self.vlm_tokens += row.vlm_tokens
        self.reasons[row.reason] += 1
        if row.confidence is not None:
            self.confidences.append(row.confidence)

    def as_json(self) -> dict[str, Any]:
        """For machines; `confidence` is the mean of the pages that have one."""
        found = self.confidences
        return {
            "pages": self.pages,
            "failed": self.failed,
            "seconds": round(self.seconds, 3),
            "vlm_tokens": self.vlm_tokens,
            "confidence": round(sum(found) / len(found), 4) if found else None,
            "reasons": dict(self.reasons.most_common(5)),
        }


@dataclass(frozen=True, slots=True)
class Changed:
    """A page that would go another way."""

    source: str
    number: int
    before: Route
    after: Route
    reason: str


@dataclass(slots=True)
class TriageReport:
    """Costs by route; `changed` holds the pages that a replay would send another way."""

    routes: dict[Route, RouteCost] = field(default_factory=dict)
    changed: list[Changed] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        ways = Counter(f"{page.before} -> {page.after}" for page in self.changed)
        return {
            "routes": {route: cost.as_json() for route, cost in sorted(self.routes.items())},
            "changes": dict(ways),
            "changed": [
                {
                    "document": page.source,
                    "page": page.number,
                    "before": page.before,
                    "after": page.after,
                    "reason": page.reason,
                }
                for page in self.changed
            ],
        }


async def triage_report(
    rows: AsyncIterator[PageRow], thresholds: Thresholds | None = None
) -> TriageReport:
    """Count the pages; with `thresholds`, decide each anew from the signals that were stored."""
    report = TriageReport()
    async for row in rows:
        report.routes.setdefault(row.route, RouteCost()).count(row)
        if thresholds is not None and (changed := replay(row, thresholds)):
            report.changed.append(changed)
    return report


def replay(row: PageRow, thresholds: Thresholds) -> Changed | None:
    """Whether the page would go another way; None if not.

    A page that a vision model read came by the OCR, and would still.
    """
    before: Route = "ocr" if row.route == "vlm" else row.route
    decision = decide(row.signals, thresholds)
    if decision.route == before:
        return None
    return Changed(row.source, row.number, row.route, decision.route, decision.reason)
