"""A document's pages before the vision model: one budget, and no second wait for a dead server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ingest.ocr import Pixels
from ingest.parsed import Line, RawPage
from ingest.vlm.base import VisionReader, VlmOptions
from ingest.vlm.budget import Budget
from ingest.vlm.check import CheckThresholds
from ingest.vlm.escalate import EscalationThresholds, OcrSigns, decide_escalation, ocr_signs
from ingest.vlm.images import unread_ink_share
from ingest.vlm.read import Clock, VlmOutcome, call_estimate, read_with_vlm
from ragplane.core.schema import BBox, Note


@dataclass(frozen=True, slots=True)
class VlmPolicy:
    """How pages are shown, which ones, and which answers are believed."""

    options: VlmOptions = field(default_factory=VlmOptions)
    escalation: EscalationThresholds = field(default_factory=EscalationThresholds)
    checks: CheckThresholds = field(default_factory=CheckThresholds)


@dataclass(slots=True)
class VlmSession:
    """Second readings for one document. `reader` is None where no model is configured.

    `budget` is what the document may spend and what its tenant has spent. For one thread.
    """

    reader: VisionReader | None
    policy: VlmPolicy = VlmPolicy()
    budget: Budget = field(default_factory=Budget)
    clock: Clock = field(default_factory=Clock)
    _used_s: float = field(default=0.0, init=False)
    _gone: str | None = field(default=None, init=False)

    def improve(self, page: RawPage, image: Pixels) -> RawPage:
        """See SecondReading. A page that should be better and is not says so in a `degraded` note.

        Pages of other routes than `ocr`, and those that failed, are left alone.
        """
        if page.route != "ocr" or page.error is not None:
            return page
        signs = page_signs(page, image, self.policy.escalation)
        refusal = self._refusal(image)
        decision = decide_escalation(signs, refusal=refusal, thresholds=self.policy.escalation)
        if decision.action == "keep":
            return page
        if self.reader is None or decision.action == "keep_degraded":
            return replace(page, notes=(*page.notes, Note("degraded", f"vlm: {decision.reason}")))
        return self._read(self.reader, page, image, decision.reason)

    def _read(self, reader: VisionReader, page: RawPage, image: Pixels, reason: str) -> RawPage:
        started_s = self.clock.now_s()
        outcome = read_with_vlm(
            reader,
            image,
            _lines(page),
            page=page.number,
            budget=self.budget,
            options=self.policy.options,
            thresholds=self.policy.checks,
            clock=self.clock,
        )
        seconds = self.clock.now_s() - started_s
        self._used_s += seconds
        self.budget = self.budget.spend(outcome.tokens.spent)
        if outcome.unavailable and outcome.error is not None:
            self._gone = f"no more was asked after page {page.number}: {outcome.error.cause}"
        return merged(page, outcome, reason, seconds)

    def _refusal(self, image: Pixels) -> str | None:
        """Why no model can be asked now; None if one can."""
        options = self.policy.options
        if self.reader is None:
            return "no vision model is configured"
        if self._gone is not None:
            return self._gone
        if self._used_s >= options.document_timeout_s:
            return f"the document's {options.document_timeout_s:g} s of vision are used up"
        return self.budget.refusal(call_estimate(image, options))


def page_signs(page: RawPage, image: Pixels, thresholds: EscalationThresholds) -> OcrSigns:
    """What OCR left behind on a page, `image` lying as its lines' boxes do."""
    lines = _lines(page)
    scale = image.shape[1] / page.width_points
    boxes = [BBox(*(edge * scale for edge in line.bbox)) for line in lines]
    signs = ocr_signs(
        lines,
        tables=bool(page.tables),
        unread_ink_share=unread_ink_share(image, boxes),
        thresholds=thresholds,
    )
    if page.confidence is None:
        return signs
    # That of the page also counts the lines that were too doubtful to be kept.
    kept = signs.mean_confidence
    return replace(signs, mean_confidence=min(page.confidence, 1.0 if kept is None else kept))


def merged(page: RawPage, outcome: VlmOutcome, reason: str, seconds: float) -> RawPage:
    """The page with what the model wrote in place of the OCR's text, or with why it is not.

    Its `vlm_tokens` are what counts against budgets: billed, or estimated where no bill came.
    """
    tokens = outcome.tokens
    told = f"{tokens.estimated:,} prompt tokens estimated, {tokens.billed:,} billed"
    asked = replace(
        page,
        reason=f"{page.reason}; {reason} ({told})",
        seconds=page.seconds + seconds,
        vlm_tokens=page.vlm_tokens + tokens.spent,
        notes=(*page.notes, *outcome.notes),
    )
    if outcome.blocks is None:
        return asked
    return replace(asked, route="vlm", blocks=outcome.blocks, paragraphs=(), tables=())


def _lines(page: RawPage) -> Sequence[Line]:
    """What OCR read on a page; the rows of its tables count as lines, as sure as the page is."""
    rows = [
        Line(" ".join(row), table.bbox, 0.0, confidence=page.confidence)
        for table in page.tables
        for row in table.rows
    ]
    return [*(line for paragraph in page.paragraphs for line in paragraph), *rows]
