"""What only the Qdrant store promises: on the engine in process, and over the HTTP client."""

from dataclasses import replace
from uuid import uuid4

import numpy as np
import pytest

from ragplane.core.errors import ConfigError, StageError, UnavailableError
from retrieval.stores import bm25
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from retrieval.stores.qdrant.engine import EVERYTHING, RefusedError, Where
from retrieval.stores.qdrant.points import MEAN_TERMS
from retrieval.stores.qdrant.store import QdrantStore
from retrieval.stores.terms import terms

OLD = ["The mirror is old.", "Both have this.", "The dome is old."]
NEW = ["A new first line.", "Both have this.", "And a second one.", "Mirror the dome."]
QUERY = np.ones(8, np.float32)


class Stopped(Exception):
    """The process that writes was killed."""


class Watched:
    """An engine that calls `hook(method)` after each of its writes and searches."""

    def __init__(self, engine, hook):
        self._engine, self._hook = engine, hook

    def __getattr__(self, name):
        method = getattr(self._engine, name)
        if name not in ("upsert", "delete", "search"):
            return method

        async def watched(*args, **kwargs):
            answer = await method(*args, **kwargs)
            await self._hook(name)
            return answer

        return watched


@pytest.fixture(params=["client", "edge"])
def engine(request):
    return request.getfixturevalue(f"{request.param}_engine")


@pytest.fixture
async def store(engine, key):
    store = QdrantStore(engine)
    await store.open_corpus(key, fingerprint="model-a", dimensions=8)
    return store


async def _seen(store, key):
    """Everything that a reader sees: texts found by both legs, and the texts of documents."""
    found = {}
    for leg in (
        await store.dense(key, QUERY, 50),
        await store.lexical(key, "mirror both dome new second old", 50),
    ):
        ids = [hit.chunk_id for hit in leg]
        chunks = await store.chunks(key, ids)
        assert set(chunks) == set(ids)
        for chunk, document in chunks.values():
            accepted = await store.accepted_text(key, document.id)
            assert accepted[chunk.start : chunk.end] == chunk.text
            found.setdefault(document.source, set()).add(chunk.text)
    return found, await store.status(key)


async def _everything(engine, key):
    corpus = await QdrantStore(engine)._corpus(key)
    return {
        record.id: record.payload
        async for page in engine.scroll(corpus.collection, EVERYTHING)
        for record in page
    }


async def test_a_reader_sees_one_version_at_every_moment(engine, store, key, make_document):
    """Behaviour 22."""
    old, new = make_document(key, OLD), make_document(key, NEW, generation=2)
    bystander = make_document(key, ["Mirror and dome."], source="file:///b.txt")
    await store.replace_document(*bystander)
    await store.replace_document(*old)
    states = []

    async def look(_):
        states.append(await _seen(store, key))

    await QdrantStore(Watched(engine, look)).replace_document(*new)
    sources = {"file:///a.txt", "file:///b.txt"}
    assert all(set(found) == sources for found, _ in states)
    texts = [found["file:///a.txt"] for found, _ in states]
    flipped = texts.index(set(NEW))
    assert texts == [set(OLD)] * flipped + [set(NEW)] * (len(texts) - flipped)
    assert 0 < flipped < len(texts) - 1
    counts = [status.chunks for _, status in states]
    assert counts == [4] * flipped + [5] * (len(texts) - flipped)


async def test_a_document_that_changes_during_a_search_is_found_whole(
    engine, store, key, make_document
):
    """Behaviour 22."""
    await store.replace_document(*make_document(key, OLD))
    changes = iter([make_document(key, NEW, generation=2), make_document(key, OLD, generation=3)])

    async def change(_):
        if parts := next(changes, None):
            await store.replace_document(*parts)

    reader = QdrantStore(Watched(engine, change))
    found = await reader.dense(key, QUERY, 3)
    assert {
        chunk.text for chunk, _ in (await store.chunks(key, [h.chunk_id for h in found])).values()
    } == set(OLD)
    assert len(found) == 3


async def test_versions_that_no_reader_sees_do_not_displace_chunks(
    engine, store, key, make_document
):
    """Behaviour 22."""
    parts = make_document(key, [f"mirror {n}" for n in range(40)])
    await store.replace_document(*parts)
    staged = make_document(key, [f"mirror mirror {n}" for n in range(90)], generation=2)

    async def stop(_):
        raise Stopped

    with pytest.raises(Stopped):
        await QdrantStore(Watched(engine, stop)).replace_document(*staged)
    assert len(await store.points(key)) > 40
    for found in (await store.dense(key, QUERY, 40), await store.lexical(key, "mirror", 40)):
        assert {hit.chunk_id for hit in found} == {chunk.id for chunk in parts.chunks}


@pytest.mark.parametrize("step", range(1, 5))
@pytest.mark.parametrize("again", [NEW, ["Other text.", "Both have this."], OLD])
async def test_a_write_that_was_cut_short_leaves_nothing_behind(
    engine, store, key, make_document, step, again
):
    """Behaviour 19."""
    await store.replace_document(*make_document(key, OLD))
    left = step

    async def stop(_):
        nonlocal left
        left -= 1
        if not left:
            raise Stopped

    with pytest.raises(Stopped):
        await QdrantStore(Watched(engine, stop)).replace_document(
            *make_document(key, NEW, generation=2)
        )
    found, _ = await _seen(store, key)
    assert found["file:///a.txt"] in (set(OLD), set(NEW))
    parts = make_document(key, again, generation=2)
    await store.replace_document(*parts)
    assert (await _seen(store, key))[0] == {"file:///a.txt": set(again)}
    disturbed = await _everything(engine, key)
    assert set(await store.points(key)) == {chunk.id for chunk in parts.chunks}
    kinds = [payload["kind"] for payload in disturbed.values()]
    assert sorted(kinds) == sorted(["corpus", "document", "text", *["chunk"] * len(again)])


async def test_an_unchanged_chunk_keeps_its_point(store, key, make_document):
    """Behaviour 19."""
    await store.replace_document(*make_document(key, OLD))
    before = await store.points(key)
    await store.replace_document(*make_document(key, NEW, generation=2))
    after = await store.points(key)
    assert len(before.keys() & after.keys()) == 1
    assert {fact.generation for fact in after.values()} == {2}


async def test_a_deleted_document_is_gone_at_once_and_whole(engine, store, key, make_document):
    """Behaviour 22."""
    parts = make_document(key, OLD)
    await store.replace_document(*parts)
    states = []

    async def look(_):
        states.append((await _seen(store, key))[0])

    await QdrantStore(Watched(engine, look)).delete_document(key, parts.document.id)
    assert states == [{}, {}]
    assert [payload["kind"] for payload in (await _everything(engine, key)).values()] == ["corpus"]


async def test_scores_are_bm25_with_the_tenants_own_idf(store, key, make_document):
    await store.replace_document(*make_document(key, OLD + NEW[:1] + NEW[2:]))
    stranger = CorpusKey(uuid4().hex, key.corpus)
    await store.open_corpus(stranger, fingerprint="model-a", dimensions=8)
    for number in range(9):
        theirs = make_document(stranger, ["mirror mirror"], source=f"file:///{number}.txt")
        await store.replace_document(*theirs)
    hits = await store.lexical(key, "old mirror", 10)
    chunks = await store.chunks(key, [hit.chunk_id for hit in hits])
    counts = [terms(text) for text in OLD + NEW[:1] + NEW[2:]]
    weights = {
        term: bm25.idf(len(counts), sum(term in found for found in counts))
        for term in terms("old mirror")
    }
    assert len(hits) == 3
    for hit in hits:
        found = terms(chunks[hit.chunk_id][0].text)
        frequencies = {term: found.count(term) for term in found}
        expected = bm25.score(weights, frequencies, len(found), MEAN_TERMS)
        assert hit.score == pytest.approx(expected, rel=1e-5)


async def test_both_legs_order_as_the_exact_store_does(store, key, make_document):
    exact = MemoryStore()
    await exact.open_corpus(key, fingerprint="model-a", dimensions=8)
    words = ["mirror", "dome", "old", "new", "second", "line"]
    texts = [" ".join(words[: 1 + n % 6]) + f" number {n}" for n in range(60)]
    parts = make_document(key, texts)
    await store.replace_document(*parts)
    await exact.replace_document(*parts)
    for _ in range(3):
        query = np.random.default_rng(1).normal(size=8).astype(np.float32)
        ours, theirs = await store.dense(key, query, 20), await exact.dense(key, query, 20)
        assert [hit.chunk_id for hit in ours] == [hit.chunk_id for hit in theirs]
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-5)
    best = (await exact.lexical(key, "line number 35", 1))[0].chunk_id
    assert (await store.lexical(key, "line number 35", 1))[0].chunk_id == best


async def test_tenants_of_a_corpus_share_its_model(store, key):
    stranger = CorpusKey(uuid4().hex, key.corpus)
    assert await store.fingerprint(stranger) is None
    with pytest.raises(ConfigError, match="made with the encoder model-a"):
        await store.open_corpus(stranger, fingerprint="model-b", dimensions=8)
    assert await store.fingerprint(stranger) is None
    await store.open_corpus(stranger, fingerprint="model-a", dimensions=8)
    assert await store.fingerprint(stranger) == "model-a"


async def test_what_the_engine_refuses_is_the_documents_fault(engine, store, key, make_document):
    class Refusing(Watched):
        async def upsert(self, collection, points):
            raise RefusedError("Qdrant at h cannot write points: 413 too large")

    async def hook(_):
        pass

    with pytest.raises(StageError, match=r"store: file:///a\.txt .*413 too large"):
        await QdrantStore(Refusing(engine, hook)).replace_document(*make_document(key, OLD))


async def test_text_that_was_lost_is_told(engine, store, key, make_document):
    parts = make_document(key, OLD)
    await store.replace_document(*parts)
    corpus = await store._corpus(key)
    lost = [
        id_
        for id_, payload in (await _everything(engine, key)).items()
        if payload["kind"] == "text"
    ]
    await engine.delete(corpus.collection, Where({}, ids=lost))
    with pytest.raises(UnavailableError, match="has lost text of document"):
        await store.accepted_text(key, parts.document.id)


async def test_offsets_follow_the_version(store, key, make_document):
    parts = make_document(key, OLD)
    await store.replace_document(*parts)
    shifted = [replace(chunk, prefix="Title", tokens=50) for chunk in parts.chunks]
    document = replace(parts.document, generation=2)
    await store.replace_document(document, parts.pages, shifted, parts.vectors)
    chunks = await store.chunks(key, [chunk.id for chunk in shifted])
    assert [chunks[chunk.id] for chunk in shifted] == [(chunk, document) for chunk in shifted]
    assert (await store.status(key)).tokens == 150
