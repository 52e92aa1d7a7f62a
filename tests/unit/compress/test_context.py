"""The context: the budget is a contract, sentences are byte-identical, citations resolve."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compress.context import compress, page_label
from ragplane.core.errors import InputError, UnavailableError
from ragplane.core.schema import Hit
from retrieval.search import Searcher
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.encoder import RerankScores
from serve.fake import FakeEncoder
from tests.unit.conftest import AddDocument, AddTable

QUESTION = "When does the gate open?"
TEXTS = (
    "The pump is green. It was painted in May. The cellar is dry.",
    "The gate is old. It does open at noon. Nobody knows why <b>it</b> is late – 5 µm off.",
    "A dog lives in the yard. The yard is wide. The wall costs 1,250.50 crowns.",
)


async def hits_of(
    store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_document: AddDocument
) -> tuple[Hit, ...]:
    for number, text in enumerate(TEXTS):
        await add_document(f"{number}.txt", text, title=f"Manual {number}")
    return (await Searcher(store, encoder).search(QUESTION, key, 8)).result.hits


async def test_what_fits_is_left_untouched(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_document: AddDocument
) -> None:
    hits = await hits_of(memory_store, encoder, key, add_document)
    context = (await compress(QUESTION, hits, 500, encoder)).context
    for text in TEXTS:
        assert text in context.text
    assert context.tokens_dropped == max(0, context.tokens_retrieved - context.tokens)


@pytest.mark.parametrize("budget", [16, 20, 24, 30, 40, 55])
async def test_the_measured_tokens_never_exceed_the_budget(
    memory_store: MemoryStore,
    encoder: FakeEncoder,
    key: CorpusKey,
    add_document: AddDocument,
    budget: int,
) -> None:
    hits = await hits_of(memory_store, encoder, key, add_document)
    context = (await compress(QUESTION, hits, budget, encoder)).context
    assert context.tokens <= budget
    assert not context.text or (await encoder.count_tokens([context.text]))[0] == context.tokens


async def test_the_sentence_that_answers_survives_with_what_it_leans_on(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_document: AddDocument
) -> None:
    hits = await hits_of(memory_store, encoder, key, add_document)
    context = (await compress(QUESTION, hits, 20, encoder)).context
    assert "The gate is old. It does open at noon." in context.text


async def test_every_span_resolves_to_the_document_it_came_from(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_document: AddDocument
) -> None:
    hits = await hits_of(memory_store, encoder, key, add_document)
    context = (await compress(QUESTION, hits, 40, encoder)).context
    assert context.spans
    for span in context.spans:
        accepted = await memory_store.accepted_text(key, span.document.id)
        assert accepted is not None
        assert accepted[span.start : span.end] == span.text
        assert context.sources[span.source] == span.document
        assert f"[{span.source}] {span.document.title}, p. 1" in context.text


async def test_a_table_header_is_said_once_and_is_no_sentence(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_table: AddTable
) -> None:
    await add_table("| Item | Price |", "| lamp | 12 |", "| desk | 80 |")
    hits = (await Searcher(memory_store, encoder).search("price of a lamp", key, 8)).result.hits
    context = (await compress("price of a lamp", hits, 200, encoder)).context
    assert context.text.count("| Item | Price |") == 1
    assert [span.text for span in context.spans] == ["| lamp | 12 |", "| desk | 80 |"]


async def test_no_hits_give_an_empty_context(encoder: FakeEncoder) -> None:
    context = (await compress(QUESTION, [], 100, encoder)).context
    assert (context.text, context.tokens, context.spans) == ("", 0, ())


async def test_a_budget_without_room_for_a_citation_line_is_refused(encoder: FakeEncoder) -> None:
    with pytest.raises(InputError, match="at least 16"):
        await compress(QUESTION, [], 15, encoder)


async def test_a_reranker_that_is_down_keeps_the_order_of_passages_and_says_so(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_document: AddDocument
) -> None:
    class Broken(FakeEncoder):
        async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores:
            raise UnavailableError("down")

    hits = await hits_of(memory_store, encoder, key, add_document)
    context = (await compress(QUESTION, hits, 20, Broken(dimensions=256))).context
    assert context.spans[0].document == hits[0].document
    assert not context.scored
    assert context.degradations == (
        "compress: sentences kept in passage order (UnavailableError: down)",
    )


def test_pages_are_labelled_as_people_write_them() -> None:
    assert page_label(3, 3) == "p. 3"
    assert page_label(3, 4) == "pp. 3-4"
