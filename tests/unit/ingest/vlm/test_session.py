"""The pages of one document before the vision model."""

from __future__ import annotations

from dataclasses import replace

from ingest.parsed import RawPage, Table
from ingest.vlm.base import VlmAnswer, VlmFailure, VlmOptions
from ingest.vlm.budget import Budget
from ingest.vlm.fake import FakeVisionReader
from ingest.vlm.read import Clock, call_estimate
from ingest.vlm.session import VlmPolicy, VlmSession
from ragplane.core.errors import StageError
from ragplane.core.schema import BBox
from tests.unit.ingest.vlm.pages import ANSWER, TEXTS, inked_page, lines_of, ocr_page

SURE = lines_of()
UNSURE = [*lines_of(TEXTS[:1], 0.96), *lines_of(TEXTS[1:], 0.76)]
IMAGE = inked_page(SURE)
LIE = ANSWER.replace("2024", "2042")
OFF = VlmFailure("ConnectError http://vlm/v1: refused", retriable=True)


def session(reader: FakeVisionReader | None, budget: Budget | None = None) -> VlmSession:
    now = iter(range(10**6))
    clock = Clock(lambda: float(next(now)), lambda seconds: None)
    return VlmSession(reader, VlmPolicy(), budget or Budget(), clock)


def note_of(page: RawPage) -> str:
    [note] = page.notes
    assert note.kind == "degraded"
    return note.text


def test_a_page_that_ocr_reads_well_is_left_alone() -> None:
    """Behaviour 3."""
    reader = FakeVisionReader(ANSWER)
    page = replace(ocr_page(SURE), confidence=0.98)
    assert session(reader).improve(page, IMAGE) is page
    # Of a page much of which could not be read at all, the rest may be sure.
    assert session(reader).improve(replace(page, confidence=0.5), IMAGE).route == "vlm"
    assert len(reader.calls) == 1


def test_pages_of_other_routes_and_failed_ones_are_left_alone() -> None:
    """Behaviour 3."""
    reader = FakeVisionReader(ANSWER)
    for page in (
        replace(ocr_page(UNSURE), route="text"),
        replace(ocr_page([]), error=StageError("ocr", "out of memory"), width_points=0.0),
    ):
        assert session(reader).improve(page, IMAGE) is page
    assert reader.calls == []


def test_a_page_that_the_model_reads_takes_its_route() -> None:
    """Behaviours 3 and 7."""
    reader = FakeVisionReader(ANSWER)
    page = session(reader).improve(ocr_page(UNSURE), IMAGE)
    assert page.route == "vlm"
    assert page.blocks[0].text == TEXTS[0]
    assert (page.paragraphs, page.tables, page.notes) == ((), (), ())
    assert page.vlm_tokens == reader.calls[0].image.tokens + len(ANSWER.split())
    assert page.confidence == 0.5
    assert page.seconds > 1.0
    assert "mean confidence is 0." in page.reason
    assert f"prompt tokens estimated, {page.vlm_tokens:,} billed" in page.reason


def test_a_page_whose_answers_are_bad_keeps_its_ocr_text_and_its_bill() -> None:
    """Behaviours 3 and 8."""
    before = ocr_page(UNSURE)
    page = session(FakeVisionReader(LIE)).improve(before, IMAGE)
    assert (page.route, page.paragraphs, page.blocks) == ("ocr", before.paragraphs, ())
    assert note_of(page) == (
        "vlm: the answer has 2042 where the OCR was sure of 2024; the OCR's text is kept"
    )
    assert page.vlm_tokens > 3000


def test_without_a_model_the_page_is_degraded() -> None:
    """Behaviour 3."""
    page = session(None).improve(ocr_page(UNSURE), IMAGE)
    assert page.route == "ocr"
    assert note_of(page).endswith("; no vision model is configured")


def test_over_budget_the_page_is_degraded_and_nothing_is_asked() -> None:
    """Behaviour 3."""
    reader = FakeVisionReader(ANSWER)
    enough_for_two = call_estimate(IMAGE, VlmOptions()) + 2000
    document = session(reader, Budget(document_tokens=enough_for_two))
    pages = [document.improve(ocr_page(UNSURE, number), IMAGE) for number in (1, 2, 3, 4)]
    assert [page.route for page in pages] == ["vlm", "vlm", "ocr", "ocr"]
    assert len(reader.calls) == 2
    assert "the document's budget of" in note_of(pages[2])
    assert document.budget.document_spent == sum(page.vlm_tokens for page in pages)


def test_a_page_costs_what_counts_against_the_budget_also_where_no_bill_came() -> None:
    """Behaviours 3 and 7: else a server that tells no usage would be free."""
    silent = VlmAnswer(ANSWER, "stop", None, None)
    document = session(FakeVisionReader(silent))
    page = document.improve(ocr_page(UNSURE), IMAGE)
    assert page.route == "vlm"
    assert page.vlm_tokens == document.budget.tenant_spent > 0
    assert "0 billed" in page.reason


def test_a_server_that_is_gone_is_not_waited_for_again() -> None:
    """Behaviour 8."""
    reader = FakeVisionReader(OFF)
    document = session(reader)
    first, second = (document.improve(ocr_page(UNSURE, number), IMAGE) for number in (1, 2))
    assert len(reader.calls) == 3
    assert note_of(first) == f"vlm: {OFF.cause}; the OCR's text is kept"
    assert note_of(second).endswith(f"no more was asked after page 1: {OFF.cause}")


def test_bad_answers_do_not_end_the_documents_second_readings() -> None:
    reader = FakeVisionReader(LIE, LIE, LIE, ANSWER)
    document = session(reader)
    pages = [document.improve(ocr_page(UNSURE, number), IMAGE) for number in (1, 2)]
    assert [page.route for page in pages] == ["ocr", "vlm"]


def test_a_documents_time_for_the_model_ends() -> None:
    reader = FakeVisionReader(ANSWER)
    document = session(reader)
    document.policy = VlmPolicy(VlmOptions(document_timeout_s=3.0))
    pages = [document.improve(ocr_page(UNSURE, number), IMAGE) for number in (1, 2)]
    assert [page.route for page in pages] == ["vlm", "ocr"]
    assert "the document's 3 s of vision are used up" in note_of(pages[1])


def test_what_ocr_read_in_tables_is_a_witness_too() -> None:
    """Behaviour 8."""
    table = Table(BBox(72, 300, 400, 360), (("Pier", "Toll"), ("North", "9,318.40")))
    before = replace(ocr_page(UNSURE), tables=(table,), confidence=0.96)
    answer = f"{ANSWER}\n| Pier | Toll |\n|---|---|\n| North | 9,318.40 |\n"
    page = session(FakeVisionReader(answer)).improve(before, IMAGE)
    assert (page.route, page.tables) == ("vlm", ())
    assert page.blocks[-1].bbox == table.bbox
    lie = answer.replace("9,318.40", "9,381.40")
    assert "the answer has 9381.40 where the OCR was sure of 9318.40" in note_of(
        session(FakeVisionReader(lie)).improve(before, IMAGE)
    )
