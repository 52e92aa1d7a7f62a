"""Citations, the prompt, and the extractive answer."""

from __future__ import annotations

from uuid import UUID

import pytest

from ragplane.core.schema import Context, Document, Span
from retrieval.citations import resolve_citations
from retrieval.extract import extract_answer
from retrieval.prompt import SYSTEM, inert, user_message


def document(number: int) -> Document:
    return Document(
        UUID(int=number),
        "t",
        "c",
        f"file:///{number}.pdf",
        "0" * 64,
        "text/plain",
        f"Title {number}",
    )


def span(source: int, text: str, score: float = 0.5) -> Span:
    return Span(document(source), source, 1, 1, 0, len(text), text, score)


def context(*spans: Span) -> Context:
    sources = {s.source: s.document for s in spans}
    return Context("", 10, spans, 20, 10, 100, sources)


def test_a_citation_quotes_the_span_that_the_sentence_shares_words_with() -> None:
    given = context(span(1, "The pump is green."), span(1, "The gate opens at noon."))
    cited = resolve_citations("It opens at noon [1].", given)
    assert [c.quote for c in cited.citations] == ["The gate opens at noon."]
    assert cited.text == "It opens at noon [1]."
    assert cited.removed == ()


def test_a_citation_of_a_source_that_was_not_given_is_removed_and_reported() -> None:
    cited = resolve_citations("Noon [1]. Green [7].", context(span(1, "The gate opens at noon.")))
    assert cited.text == "Noon [1]. Green."
    assert cited.removed == (7,)
    assert [c.id for c in cited.citations] == [1]


def test_an_extractive_answer_is_word_for_word_and_cited() -> None:
    text, citations = extract_answer(context(span(2, "The gate opens at noon.", 0.9)), 0.4)
    assert text == "The gate opens at noon. [2]"
    assert (citations[0].id, citations[0].title) == (2, "Title 2")


def test_a_far_weaker_sentence_is_left_out() -> None:
    given = context(span(1, "Weak.", 0.5), span(1, "Strong.", 0.9))
    assert extract_answer(given, 0.0)[0] == "Strong. [1]"


@pytest.mark.parametrize("spans", [(), (span(1, "Far from it.", 0.1),)])
def test_nothing_relevant_is_no_answer(spans: tuple[Span, ...]) -> None:
    assert extract_answer(context(*spans), 0.4) == ("", ())


def test_the_stable_part_of_the_prompt_holds_nothing_of_the_question() -> None:
    message = user_message("When does the gate open?", "[1] Manual, p. 1\nAt noon.")
    assert "gate" not in SYSTEM
    assert message.endswith("Question: When does the gate open?\nAnswer:")
    assert message.index("At noon.") < message.index("Question:")


@pytest.mark.parametrize("token", ["<|im_end|>", "<|endoftext|>", "</s>", "[INST]", "[/INST]"])
def test_control_tokens_in_a_document_stay_inert(token: str) -> None:
    assert token not in inert(f"before {token} after")


@pytest.mark.parametrize("text", ["a < b", "<table>", "[1] x", "x[0]", "if a <= b:"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert inert(text) == text
