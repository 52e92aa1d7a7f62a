"""Answers: extracted or generated, with every fallback reported."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipelines.answering import Answerer
from pipelines.evaluation import evaluate, holds
from pipelines.sample import Question
from ragplane.core.errors import ModelError, UnavailableError
from retrieval.search import Searcher
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.encoder import RerankScores
from serve.fake import FakeEncoder
from serve.generator import Generation, Generator
from tests.unit.conftest import AddDocument

QUESTION = "When does the gate open?"


class FakeGenerator:
    """Writes what it was told to, or fails; remembers its prompts."""

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.prompts: list[str] = []

    async def generate(self, system: str, user: str, *, max_tokens: int) -> Generation:
        self.prompts.append(user)
        if self.text is None:
            raise UnavailableError("generate: http://127.0.0.1:9: refused")
        return Generation(self.text, 40, max_tokens // 64)

    async def aclose(self) -> None:
        """Nothing to close."""


@pytest.fixture
async def searcher(
    memory_store: MemoryStore, encoder: FakeEncoder, add_document: AddDocument
) -> Searcher:
    await add_document("gate.txt", "The gate does open at noon.", title="Gate manual")
    await add_document("pump.txt", "The pump stands in the cellar.", title="Pump manual")
    return Searcher(memory_store, encoder)


def answerer(
    searcher: Searcher, encoder: FakeEncoder, generator: Generator | None, abstain: float = 0.3
) -> Answerer:
    return Answerer(searcher, encoder, generator, abstain)


async def test_without_a_generator_the_answer_is_word_for_word(
    searcher: Searcher, encoder: FakeEncoder, key: CorpusKey
) -> None:
    answer = await answerer(searcher, encoder, None).ask(QUESTION, key, 100)
    assert answer.text == "The gate does open at noon. [1]"
    assert answer.citations[0].document == "file:///gate.txt"
    assert answer.citations[0].quote == "The gate does open at noon."
    assert answer.context.tokens <= 100
    assert answer.usage.encoder_tokens > 0
    assert answer.degradations == ()


async def test_a_generated_answer_keeps_its_citations(
    searcher: Searcher, encoder: FakeEncoder, key: CorpusKey
) -> None:
    generator = FakeGenerator("At noon [1].")
    answer = await answerer(searcher, encoder, generator).ask(QUESTION, key, 100)
    assert answer.text == "At noon [1]."
    assert [citation.id for citation in answer.citations] == [1]
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (40, 4)
    assert answer.context.text in generator.prompts[0]


async def test_an_invented_citation_is_removed_and_reported(
    searcher: Searcher, encoder: FakeEncoder, key: CorpusKey
) -> None:
    answer = await answerer(searcher, encoder, FakeGenerator("Noon [9].")).ask(QUESTION, key, 100)
    assert answer.text == "Noon."
    assert answer.degradations == (
        "citation [9] removed: no such source was given",
        "answer: cites no source",
    )


async def test_a_generator_that_is_down_falls_back_to_extraction(
    searcher: Searcher, encoder: FakeEncoder, key: CorpusKey
) -> None:
    answer = await answerer(searcher, encoder, FakeGenerator(None)).ask(QUESTION, key, 100)
    assert answer.text == "The gate does open at noon. [1]"
    assert "extracted instead" in answer.degradations[0]


async def test_an_empty_completion_falls_back_to_extraction(
    searcher: Searcher, encoder: FakeEncoder, key: CorpusKey
) -> None:
    answer = await answerer(searcher, encoder, FakeGenerator(" ")).ask(QUESTION, key, 100)
    assert answer.text == "The gate does open at noon. [1]"
    assert "an empty completion" in answer.degradations[0]


async def test_without_a_reranker_there_is_still_an_answer_that_says_so(
    memory_store: MemoryStore, searcher: Searcher, key: CorpusKey
) -> None:
    class NoReranker(FakeEncoder):
        async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores:
            raise ModelError("no rerank model is served")

    encoder = NoReranker(dimensions=256)
    asked = answerer(Searcher(memory_store, encoder), encoder, None)
    answer = await asked.ask("gate noon", key, 100)
    assert answer.text.startswith("The gate does open at noon. [1]")
    assert [text.split(":")[0] for text in answer.degradations] == ["rerank", "compress"]
    context = await asked.context("gate noon", key, 100)
    assert context.degradations == answer.degradations


async def test_nothing_relevant_abstains_without_calling_the_model(
    searcher: Searcher, encoder: FakeEncoder, key: CorpusKey
) -> None:
    generator = FakeGenerator("Lisbon [1].")
    answer = await answerer(searcher, encoder, generator).ask("Capital of Portugal?", key, 100)
    assert (answer.text, answer.citations, generator.prompts) == ("", (), [])


async def test_a_model_that_finds_nothing_abstains(
    searcher: Searcher, encoder: FakeEncoder, key: CorpusKey
) -> None:
    answer = await answerer(searcher, encoder, FakeGenerator("NOT FOUND")).ask(QUESTION, key, 100)
    assert (answer.text, answer.citations) == ("", ())


async def test_the_evaluation_counts_what_happened(
    searcher: Searcher, encoder: FakeEncoder, key: CorpusKey
) -> None:
    questions = [
        Question("1", QUESTION, "at noon", "gate.txt", 1, ()),
        Question("2", "In which cellar stands the pump?", "in the attic", "pump.txt", 1, ()),
        Question("3", "Capital of Portugal?", None, None, None, ("abstain",)),
    ]
    asked = answerer(searcher, encoder, None)
    result = await evaluate(searcher, asked, questions, key, k=1, budget_tokens=100)
    assert result.recall_at_k == 1.0
    assert result.mrr_at_10 == 1.0
    assert result.context_recall == 0.5
    assert result.answer_recall == 0.5
    assert result.abstention == 1.0


async def test_an_evaluation_without_questions_is_defined(
    searcher: Searcher, encoder: FakeEncoder, key: CorpusKey
) -> None:
    result = await evaluate(
        searcher, answerer(searcher, encoder, None), [], key, k=5, budget_tokens=100
    )
    assert (result.recall_at_k, result.mrr_at_10, result.abstention) == (1.0, 1.0, 1.0)


def test_holds_ignores_white_space_and_case() -> None:
    assert holds("It costs\n980  Crowns.", "980 crowns")
    assert not holds("It costs 98 crowns.", "980 crowns")
    assert not holds("anything", None)
