"""One page through a vision model: tries, checks, and the way back to OCR."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ingest.ocr import Pixels
from ingest.parsed import Line
from ingest.vlm.answer import clean
from ingest.vlm.base import (
    MAX_TRIES,
    VisionReader,
    VlmAnswer,
    VlmCall,
    VlmFailure,
    VlmOptions,
    VlmReply,
)
from ingest.vlm.budget import Budget
from ingest.vlm.check import CheckThresholds, Witness, find_fault, is_blind, witness
from ingest.vlm.images import looks_blank, page_image
from ingest.vlm.markdown import answer_blocks, located
from ingest.vlm.prompts import INSTRUCTIONS, REQUEST
from ingest.vlm.tokens import scaled_size, text_tokens, visual_tokens
from ragplane.core.errors import StageError
from ragplane.core.schema import Block, Note

_TEMPERATURES = (0.0, 0.3, 0.6)  # a model that loops at 0 would loop again
_PAUSES_S = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and waiting, for tests to replace."""

    now_s: Callable[[], float] = time.monotonic
    sleep_s: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class VlmTokens:
    """Tokens of all tries of a page.

    `estimated` is what their prompts were counted to be before, `billed` what the server says,
    prompts and answers; `spent` is billed, or estimated where a call that may have worked ended
    without a bill.
    """

    estimated: int = 0
    billed: int = 0
    spent: int = 0

    def plus(self, reply: VlmReply, prompt_tokens: int) -> VlmTokens:
        """With one more try, whose prompt was estimated at `prompt_tokens`."""
        bill = reply.billed_tokens if isinstance(reply, VlmAnswer) else None
        worked = isinstance(reply, VlmAnswer) or reply.worked
        spent = bill if bill is not None else prompt_tokens if worked else 0
        return VlmTokens(
            self.estimated + prompt_tokens, self.billed + (bill or 0), self.spent + spent
        )


@dataclass(frozen=True, slots=True)
class VlmOutcome:
    """What came of a page.

    `blocks` are None where the page falls back to OCR; `error` then says why, at stage `vlm`.
    `unavailable` means that other pages would fail alike.
    """

    blocks: tuple[Block, ...] | None
    tokens: VlmTokens
    tries: int
    notes: tuple[Note, ...] = ()
    error: StageError | None = None
    unavailable: bool = False


def prompt_estimate(image: Pixels, options: VlmOptions) -> int:
    """Tokens of one prompt with this page, told before the image is even scaled."""
    height, width = image.shape[:2]
    size = scaled_size(width, height, options.max_pixels, options.patch_pixels)
    return visual_tokens(*size, options.patch_pixels) + text_tokens(INSTRUCTIONS + REQUEST)


def call_estimate(image: Pixels, options: VlmOptions) -> int:
    """The most that one call with this page costs: its prompt and the longest answer."""
    return prompt_estimate(image, options) + options.answer_tokens


def read_with_vlm(
    reader: VisionReader,
    image: Pixels,
    lines: Sequence[Line],
    *,
    page: int,
    budget: Budget,
    options: VlmOptions,
    thresholds: CheckThresholds,
    clock: Clock,
) -> VlmOutcome:
    """Ask for an upright page, at most 3 times, and check each answer against its OCR `lines`.

    Never raises for what a server does: the outcome tells it.
    """
    shown = page_image(image, options)
    seen = witness(lines, thresholds)
    blank = looks_blank(image)
    prompt_tokens = prompt_estimate(image, options)
    end_s = clock.now_s() + options.page_timeout_s
    tokens, tries, setback = VlmTokens(), 0, _Setback("")
    while tries < MAX_TRIES and setback.again:
        left_s = end_s - clock.now_s() - setback.pause_s
        refusal = budget.spend(tokens.spent).refusal(prompt_tokens + options.answer_tokens)
        if refusal is None and left_s <= 0:
            refusal = f"no time is left for try {tries + 1}"
        if refusal:
            setback = replace(setback, reason="; ".join(filter(None, (setback.reason, refusal))))
            break
        clock.sleep_s(setback.pause_s)
        timeout_s = min(options.timeout_s, left_s)
        call = VlmCall(shown, _TEMPERATURES[tries], options.answer_tokens, timeout_s)
        reply = reader.read(call)
        tokens = tokens.plus(reply, prompt_tokens)
        judged = _judge(reply, seen, blank, tries, thresholds)
        tries += 1
        if isinstance(judged, str):
            blocks = located(answer_blocks(judged), lines)
            return VlmOutcome(
                blocks, tokens, tries, notes=_doubts(judged, is_blind(seen, thresholds))
            )
        setback = judged
    error = StageError("vlm", setback.reason, page=page)
    return VlmOutcome(None, tokens, tries, _fallback(setback), error, setback.unavailable)


@dataclass(frozen=True, slots=True)
class _Setback:
    """Why a try came to nothing, whether another is worth it, and after how long."""

    reason: str
    again: bool = True
    pause_s: float = 0.0
    unavailable: bool = False


def _judge(
    reply: VlmReply, seen: Witness, blank: bool, tries: int, thresholds: CheckThresholds
) -> str | _Setback:
    """The Markdown that is accepted, or what is wrong; `tries` were made before."""
    if isinstance(reply, VlmFailure):
        asked_s = reply.retry_after_s or 0.0
        pause_s = max(asked_s, _PAUSES_S[min(tries, len(_PAUSES_S) - 1)])
        return _Setback(reply.cause, reply.retriable, pause_s, not reply.of_page)
    answer = clean(reply.text)
    fault = find_fault(answer, reply.finish_reason, seen, blank=blank, thresholds=thresholds)
    return answer if fault is None else _Setback(fault.reason, again=not fault.final)


def _doubts(answer: str, blind: bool) -> tuple[Note, ...]:
    if not (answer and blind):
        return ()
    return (Note("degraded", "vlm: the OCR read too little to confirm the model's text"),)


def _fallback(setback: _Setback) -> tuple[Note, ...]:
    return (Note("degraded", f"vlm: {setback.reason}; the OCR's text is kept"),)
