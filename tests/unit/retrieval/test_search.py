"""Hybrid search over the store in memory and the fake encoder."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ragplane.core.errors import ConfigError, InputError, UnavailableError
from retrieval.search import Searcher
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.encoder import RerankScores
from serve.fake import FakeEncoder
from tests.unit.conftest import AddDocument


class BrokenReranker(FakeEncoder):
    """Embeds, but its reranker is down."""

    async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores:
        raise UnavailableError("the reranker is down")


async def test_the_passage_with_the_words_of_the_query_is_first(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_document: AddDocument
) -> None:
    await add_document("a.txt", "The pump stands in the cellar.")
    await add_document("b.txt", "The gate opens at noon.")
    result = (
        await Searcher(memory_store, encoder).search("when does the gate open", key, 2)
    ).result
    assert result.hits[0].document.source == "file:///b.txt"
    assert [hit.rank for hit in result.hits] == [1, 2]
    assert {"dense", "lexical", "fused", "rerank"} <= set(result.hits[0].scores)
    assert set(result.timings_ms) == {"total", "embed", "legs", "fetch", "rerank"}


async def test_k_is_the_most_that_comes_back(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_document: AddDocument
) -> None:
    for number in range(6):
        await add_document(f"{number}.txt", f"The gate number {number} opens at noon.")
    result = (await Searcher(memory_store, encoder).search("gate", key, 4)).result
    assert len(result.hits) == 4


async def test_a_reranker_that_is_down_falls_back_and_says_so(
    memory_store: MemoryStore, key: CorpusKey, add_document: AddDocument
) -> None:
    await add_document("a.txt", "The gate opens at noon.")
    result = (
        await Searcher(memory_store, BrokenReranker(dimensions=256)).search("gate", key, 1)
    ).result
    assert len(result.hits) == 1
    assert result.degradations == ("rerank: skipped (UnavailableError: the reranker is down)",)


async def test_another_tenant_never_comes_back(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_document: AddDocument
) -> None:
    await add_document("a.txt", "The gate opens at noon.")
    await add_document("b.txt", "The gate opens at noon.", key=CorpusKey("rival", key.corpus))
    result = (await Searcher(memory_store, encoder).search("gate", key, 10)).result
    assert {hit.document.tenant for hit in result.hits} == {key.tenant}


async def test_identical_passages_are_one_hit_that_names_both_sources(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_document: AddDocument
) -> None:
    await add_document("a.txt", "The gate opens at noon.")
    await add_document("b.txt", "The gate opens at noon.")
    (hit,) = (await Searcher(memory_store, encoder).search("gate", key, 10)).result.hits
    assert {hit.document.source, *hit.duplicates} == {"file:///a.txt", "file:///b.txt"}


async def test_the_same_row_under_two_titles_says_two_things(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, add_document: AddDocument
) -> None:
    await add_document("a.txt", "The gate costs 9 crowns.", title="Prices 2030")
    await add_document("b.txt", "The gate costs 9 crowns.", title="Prices 2031")
    hits = (await Searcher(memory_store, encoder).search("gate", key, 10)).result.hits
    assert {hit.document.title for hit in hits} == {"Prices 2030", "Prices 2031"}


async def test_the_order_of_ingestion_changes_nothing(
    encoder: FakeEncoder, key: CorpusKey, memory_store: MemoryStore, add_document: AddDocument
) -> None:
    names = ["a.txt", "b.txt", "c.txt"]
    for name in names:
        await add_document(name, "The gate opens at noon.", title=name)
    before = (await Searcher(memory_store, encoder).search("gate", key, 3)).result
    for name in reversed(names):
        await add_document(name, "The gate opens at noon.", title=name)
    after = (await Searcher(memory_store, encoder).search("gate", key, 3)).result
    assert [hit.chunk.id for hit in before.hits] == [hit.chunk.id for hit in after.hits]


@pytest.mark.parametrize(("query", "k"), [("", 5), ("  \n", 5), ("gate", 0)])
async def test_a_query_that_cannot_be_answered_is_refused(
    memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey, query: str, k: int
) -> None:
    with pytest.raises(InputError):
        await Searcher(memory_store, encoder).search(query, key, k)


async def test_an_unknown_corpus_is_named(memory_store: MemoryStore, encoder: FakeEncoder) -> None:
    with pytest.raises(InputError, match="'nowhere' does not exist"):
        await Searcher(memory_store, encoder).search("gate", CorpusKey("acme", "nowhere"), 5)


async def test_another_model_is_refused_not_answered_from_the_wrong_space(
    memory_store: MemoryStore, key: CorpusKey, add_document: AddDocument
) -> None:
    await add_document("a.txt", "The gate opens at noon.")
    with pytest.raises(ConfigError, match="vectors of two models cannot be compared"):
        await Searcher(memory_store, FakeEncoder(dimensions=64)).search("gate", key, 5)
