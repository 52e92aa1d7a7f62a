"""Blue-green re-embedding, on the engine in process and over the HTTP client."""

from uuid import uuid4

import numpy as np
import pytest

from ragplane.core.errors import ConfigError
from retrieval.stores.base import CorpusKey
from retrieval.stores.qdrant import generations
from retrieval.stores.qdrant.store import QdrantStore

TEXTS = ["The mirror.", "The dome.", "The clock."]
QUERY = np.ones(16, np.float32)


@pytest.fixture(params=["client", "edge"])
def engine(request):
    return request.getfixturevalue(f"{request.param}_engine")


@pytest.fixture
async def store(engine, key, make_document):
    store = QdrantStore(engine)
    await store.open_corpus(key, fingerprint="model-a", dimensions=8)
    await store.replace_document(*make_document(key, TEXTS))
    return store


@pytest.fixture
def embed(vector_of):
    """The new model, and the texts that it was given."""

    async def embed(chunks):
        texts = [chunk.embedded_text for chunk in chunks]
        embed.texts += texts
        return np.array([vector_of(text, 16) for text in texts])

    embed.texts = []
    return embed


async def _refill(engine, key, embed):
    target = await generations.create_generation(engine, key.corpus, "model-b", 16)
    await generations.fill(engine, key.corpus, target, embed)
    return target


async def test_a_corpus_is_reembedded_beside_the_one_in_use(
    engine, store, key, embed, make_document, vector_of
):
    """Behaviour 23."""
    stranger = CorpusKey(uuid4().hex, key.corpus)
    await store.open_corpus(stranger, fingerprint="model-a", dimensions=8)
    await store.replace_document(*make_document(stranger, TEXTS[:1]))
    documents, status = await store.documents(key), await store.status(key)
    lexical = await store.lexical(key, "mirror clock", 5)
    ids = list(await store.points(key))
    chunks = await store.chunks(key, ids)

    target = await _refill(engine, key, embed)
    assert target.collection == "manuals__model-b__16__v2"
    assert sorted(embed.texts) == sorted([*TEXTS, TEXTS[0]])
    assert (await generations.compare(engine, key.corpus, target.collection)).exact
    assert await store.fingerprint(key) == "model-a"

    before = await generations.switch_alias(engine, key.corpus, target.collection)
    assert before == "manuals__model-a__8__v1"
    assert await store.fingerprint(key) == await store.fingerprint(stranger) == "model-b"
    assert await store.documents(key) == documents
    assert await store.chunks(key, ids) == chunks
    assert await store.lexical(key, "mirror clock", 5) == lexical
    found = await store.status(key)
    assert (found.chunks, found.pages, found.dimensions) == (status.chunks, status.pages, 16)
    [hit, *_] = await store.dense(key, vector_of(TEXTS[1], 16), 3)
    assert chunks[hit.chunk_id][0].text == TEXTS[1]
    assert hit.score == pytest.approx(1, abs=1e-5)

    assert before in await engine.collections()
    assert await generations.drop_unused(engine, key.corpus) == [before]
    assert await engine.collections() == [target.collection]
    assert len(await store.dense(key, QUERY, 9)) == 3


async def test_filling_again_embeds_only_what_changed(engine, store, key, embed, make_document):
    """Behaviour 23."""
    await store.replace_document(*make_document(key, ["Gone."], source="file:///gone.txt"))
    target = await _refill(engine, key, embed)
    gone = (await store.documents(key))["file:///gone.txt"]
    await store.delete_document(key, gone.id)
    await store.replace_document(*make_document(key, ["New."], source="file:///new.txt"))
    found = await generations.compare(engine, key.corpus, target.collection)
    assert (len(found.missing), len(found.orphan)) == (1, 1)
    embed.texts.clear()
    assert await generations.fill(engine, key.corpus, target, embed) == 1
    assert embed.texts == ["New."]
    assert (await generations.compare(engine, key.corpus, target.collection)).exact
    assert await generations.fill(engine, key.corpus, target, embed) == 0


async def test_another_model_means_another_collection(engine, store, key):
    """Behaviour 23."""
    with pytest.raises(ConfigError, match="made with the encoder model-a"):
        await store.open_corpus(key, fingerprint="model-b", dimensions=8)
    made = [await generations.create_generation(engine, key.corpus, m, 8) for m in ("b", "c")]
    assert [corpus.collection for corpus in made] == ["manuals__b__8__v2", "manuals__c__8__v3"]
    assert await generations.in_use(engine, key.corpus) == "manuals__model-a__8__v1"
    unused = [corpus.collection for corpus in made]
    assert await generations.drop_unused(engine, key.corpus) == unused
    assert await generations.drop_unused(engine, key.corpus) == []


async def test_the_alias_goes_only_to_a_collection_of_the_corpus(engine, store, key):
    other = CorpusKey(key.tenant, "other")
    await store.open_corpus(other, fingerprint="model-a", dimensions=8)
    for collection in ("other__model-a__8__v1", "nowhere"):
        with pytest.raises(ConfigError, match=f"corpus 'manuals' has no collection {collection}"):
            await generations.switch_alias(engine, key.corpus, collection)
    with pytest.raises(ConfigError, match="there is no corpus 'absent'"):
        await generations.in_use(engine, "absent")
    assert await store.fingerprint(key) == "model-a"
