"""Tries, what each costs, and the way back to OCR."""

from __future__ import annotations

from typing import Any

import pytest

from ingest.parsed import Line
from ingest.vlm.base import VlmAnswer, VlmFailure, VlmOptions
from ingest.vlm.budget import Budget
from ingest.vlm.check import CheckThresholds
from ingest.vlm.fake import FakeVisionReader
from ingest.vlm.read import Clock, VlmOutcome, VlmTokens, call_estimate, prompt_estimate
from ingest.vlm.read import read_with_vlm as read_page
from ragplane.core.errors import StageError
from tests.unit.ingest.vlm.pages import ANSWER, inked_page, lines_of, white_page

OPTIONS = VlmOptions(answer_tokens=500)
IMAGE = inked_page(lines_of())
PROMPT_TOKENS = prompt_estimate(IMAGE, OPTIONS)
LIE = ANSWER.replace("1,250.50", "1,260.50")
HANGS = VlmFailure("ReadTimeout http://vlm/v1: timed out", retriable=True, worked=True)
BUSY = VlmFailure("http://vlm/v1 answered 429: slow down", retriable=True, retry_after_s=7.0)
UNKNOWN_MODEL = VlmFailure("http://vlm/v1 answered 404: no such model", retriable=False)
TOO_LARGE = VlmFailure("http://vlm/v1 answered 413: too large", retriable=False, of_page=True)


class Hands:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept_s: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.slept_s.append(seconds)

    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self.sleep)


def read(
    reader: FakeVisionReader,
    lines: list[Line] | None = None,
    hands: Hands | None = None,
    **changes: Any,
) -> VlmOutcome:
    given: dict[str, Any] = {
        "image": IMAGE,
        "page": 4,
        "budget": Budget(),
        "options": OPTIONS,
        "thresholds": CheckThresholds(),
        "clock": (hands or Hands()).clock(),
    } | changes
    image = given.pop("image")
    return read_page(reader, image, lines_of() if lines is None else lines, **given)


def test_a_good_answer_becomes_blocks_with_boxes_and_its_bill() -> None:
    """Behaviours 7 and 8."""
    reader = FakeVisionReader(f"```markdown\n{ANSWER}```")
    outcome = read(reader)
    assert outcome.blocks is not None
    assert [block.kind for block in outcome.blocks] == ["heading", "paragraph", "paragraph"]
    assert all(block.bbox for block in outcome.blocks)
    assert (outcome.tries, outcome.notes, outcome.error) == (1, (), None)
    [call] = reader.calls
    assert outcome.tokens.estimated == PROMPT_TOKENS > call.image.tokens
    assert outcome.tokens.billed == outcome.tokens.spent
    assert outcome.tokens.billed == call.image.tokens + len(f"```markdown\n{ANSWER}```".split())


def test_a_lie_is_asked_again_at_another_temperature() -> None:
    """Behaviour 8."""
    reader = FakeVisionReader(LIE, ANSWER)
    outcome = read(reader)
    assert outcome.blocks is not None
    assert [call.temperature for call in reader.calls] == [0.0, 0.3]
    assert outcome.tokens.estimated == 2 * PROMPT_TOKENS


def test_after_three_tries_the_page_falls_back_and_every_try_is_counted() -> None:
    """Behaviour 8."""
    reader = FakeVisionReader(LIE)
    outcome = read(reader)
    assert (outcome.blocks, outcome.tries, len(reader.calls)) == (None, 3, 3)
    assert isinstance(outcome.error, StageError)
    assert str(outcome.error) == "vlm: the answer has 1260.50 where the OCR was sure of 1250.50"
    assert (outcome.error.stage, outcome.error.page) == ("vlm", 4)
    [note] = outcome.notes
    assert note.kind == "degraded"
    assert note.text == f"{outcome.error}; the OCR's text is kept"
    assert outcome.tokens.billed == 3 * (reader.calls[0].image.tokens + len(LIE.split()))
    assert not outcome.unavailable, "another page may be answered truly"


def test_a_hanging_server_is_tried_again_and_its_work_is_counted_as_spent() -> None:
    """Behaviours 7 and 8."""
    hands = Hands()
    outcome = read(FakeVisionReader(HANGS), hands=hands)
    assert (outcome.blocks, outcome.tries, outcome.unavailable) == (None, 3, True)
    assert hands.slept_s == [0.0, 0.5, 2.0]
    assert outcome.tokens == VlmTokens(3 * PROMPT_TOKENS, billed=0, spent=3 * PROMPT_TOKENS)
    assert outcome.error is not None
    assert outcome.error.cause == HANGS.cause


def test_a_servers_wish_to_wait_is_kept() -> None:
    """Behaviour 8."""
    hands = Hands()
    outcome = read(FakeVisionReader(BUSY, ANSWER), hands=hands)
    assert outcome.blocks is not None
    assert hands.slept_s == [0.0, 7.0]
    assert outcome.tokens.spent == outcome.tokens.billed


def test_a_wish_to_wait_longer_than_the_page_may_take_ends_the_page() -> None:
    """Behaviour 8."""
    hands = Hands()
    options = VlmOptions(page_timeout_s=6.0)
    outcome = read(FakeVisionReader(BUSY), hands=hands, options=options)
    assert outcome.tries == 1
    assert hands.slept_s == [0.0], "nothing is waited for"
    assert outcome.error is not None
    assert outcome.error.cause == f"{BUSY.cause}; no time is left for try 2"


def test_a_call_gets_what_is_left_of_the_pages_time() -> None:
    hands = Hands()
    reader = FakeVisionReader(BUSY, ANSWER)
    read(reader, hands=hands, options=VlmOptions(timeout_s=5.0, page_timeout_s=10.0))
    assert [call.timeout_s for call in reader.calls] == [5.0, 3.0]


@pytest.mark.parametrize(("failure", "unavailable"), [(UNKNOWN_MODEL, True), (TOO_LARGE, False)])
def test_what_asking_again_cannot_mend_is_not_asked_again(
    failure: VlmFailure, unavailable: bool
) -> None:
    outcome = read(FakeVisionReader(failure))
    assert (outcome.blocks, outcome.tries) == (None, 1)
    assert outcome.unavailable == unavailable
    assert outcome.tokens == VlmTokens(PROMPT_TOKENS, 0, 0)


def test_an_answer_that_is_cut_off_is_not_asked_again() -> None:
    """Behaviour 8."""
    cut = VlmAnswer(ANSWER, "length", 900, 500)
    outcome = read(FakeVisionReader(cut))
    assert (outcome.blocks, outcome.tries, outcome.tokens.billed) == (None, 1, 1400)


def test_the_budget_is_looked_at_before_every_try() -> None:
    """Behaviour 3."""
    reader = FakeVisionReader(LIE)
    estimate = call_estimate(IMAGE, OPTIONS)
    outcome = read(reader, budget=Budget(document_tokens=estimate + 10))
    assert len(reader.calls) == outcome.tries == 1
    assert outcome.error is not None
    assert "the OCR was sure of 1250.50; the document's budget of" in outcome.error.cause
    outcome = read(reader, budget=Budget(document_tokens=estimate - 1))
    assert (outcome.tries, outcome.tokens, len(reader.calls)) == (0, VlmTokens(), 1)


def test_a_bill_that_the_server_does_not_tell_is_estimated() -> None:
    """Behaviour 7."""
    outcome = read(FakeVisionReader(VlmAnswer(ANSWER, "stop", None, None)))
    assert outcome.tokens == VlmTokens(PROMPT_TOKENS, billed=0, spent=PROMPT_TOKENS)


def test_a_blank_page_that_is_said_to_be_blank_has_no_blocks() -> None:
    """Behaviour 8."""
    outcome = read(FakeVisionReader("(blank)"), lines=[], image=white_page())
    assert (outcome.blocks, outcome.notes) == ((), ())


def test_text_on_a_blank_page_is_never_accepted() -> None:
    """Behaviour 8."""
    outcome = read(FakeVisionReader("All warfare is deception."), lines=[], image=white_page())
    assert outcome.blocks is None
    assert outcome.error is not None
    assert outcome.error.cause == "the answer has text, and the page is blank"


def test_an_answer_that_nothing_confirms_says_so() -> None:
    outcome = read(FakeVisionReader(ANSWER), lines=[])
    assert outcome.blocks
    [note] = outcome.notes
    assert (note.kind, note.text) == (
        "degraded",
        "vlm: the OCR read too little to confirm the model's text",
    )
