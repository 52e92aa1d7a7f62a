"""What every store must do when a corpus changes its model: blue-green, resumable, atomic."""

import asyncio
from contextlib import suppress
from uuid import uuid4

import numpy as np
import psycopg
import pytest

from ragplane.core.errors import ConfigError, StageError
from retrieval.stores.base import CorpusKey

TEXTS = ["The mirror.", "The dome.", "The clock."]
OLD, NEW = "model-a", "model-b"


class Embed:
    """The new model; says what it was given, and dies before its `dies_at`-th call."""

    def __init__(self, vector_of, dimensions=16, dies_at=None):
        self.texts, self.calls = [], 0
        self._vector_of, self._dimensions, self._dies_at = vector_of, dimensions, dies_at

    async def __call__(self, chunks):
        self.calls += 1
        if self.calls == self._dies_at:
            raise KeyboardInterrupt
        self.texts += [chunk.embedded_text for chunk in chunks]
        vectors = [self._vector_of(chunk.text, self._dimensions) for chunk in chunks]
        return np.array(vectors, np.float32)


@pytest.fixture
async def opened(store, key, make_document):
    await store.open_corpus(key, fingerprint=OLD, dimensions=8)
    await store.replace_document(*make_document(key, TEXTS))
    return store


@pytest.fixture
def embed(vector_of):
    return Embed(vector_of)


async def begin(store, key):
    await store.reembedding.begin(key, fingerprint=NEW, dimensions=16)


async def test_a_corpus_changes_its_model_beside_the_searches(opened, key, embed, vector_of):
    """Behaviour 23."""
    vectors = opened.reembedding
    points, lexical = await opened.points(key), await opened.lexical(key, "mirror clock", 5)
    before = await opened.dense(key, vector_of(TEXTS[1]), 3)
    documents, status = await opened.documents(key), await opened.status(key)
    await begin(opened, key)
    assert not await vectors.switch(key, NEW)
    assert await vectors.points(key, NEW) == {}
    assert await vectors.fill(key, NEW, embed) == 3
    assert sorted(embed.texts) == sorted(TEXTS)
    assert await vectors.points(key, NEW) == points
    assert await opened.fingerprint(key) == OLD
    assert await opened.dense(key, vector_of(TEXTS[1]), 3) == before

    assert await vectors.switch(key, NEW)
    assert await opened.fingerprint(key) == NEW
    [hit, *_] = await opened.dense(key, vector_of(TEXTS[1], 16), 3)
    assert hit.score == pytest.approx(1, abs=2e-3)
    assert (await opened.chunks(key, [hit.chunk_id]))[hit.chunk_id][0].text == TEXTS[1]
    assert await opened.points(key) == points
    assert await opened.lexical(key, "mirror clock", 5) == lexical
    assert await opened.documents(key) == documents
    now = await opened.status(key)
    assert (now.chunks, now.tokens, now.pages) == (status.chunks, status.tokens, status.pages)
    assert (now.fingerprint, now.dimensions) == (NEW, 16)
    await opened.open_corpus(key, fingerprint=NEW, dimensions=16)
    with pytest.raises(ConfigError, match="made with the encoder model-b"):
        await opened.open_corpus(key, fingerprint=OLD, dimensions=8)
    assert await vectors.switch(key, NEW)  # twice is fine


async def test_a_fill_that_was_killed_goes_on(opened, key, vector_of, make_document):
    """Behaviours 21 and 23."""
    vectors = opened.reembedding
    await begin(opened, key)
    with suppress(KeyboardInterrupt):
        await vectors.fill(key, NEW, Embed(vector_of, dies_at=1))
    assert await opened.fingerprint(key) == OLD
    assert not await vectors.switch(key, NEW)
    await begin(opened, key)
    assert await vectors.fill(key, NEW, Embed(vector_of)) == 3
    await begin(opened, key)
    again = Embed(vector_of)
    assert await vectors.fill(key, NEW, again) == 0
    assert again.texts == []
    assert await vectors.switch(key, NEW)


async def test_what_changes_meanwhile_is_embedded_before_the_switch(
    opened, key, embed, make_document, vector_of
):
    """Behaviours 22 and 23."""
    vectors = opened.reembedding
    gone = make_document(key, ["Gone."], source="file:///gone.txt")
    await opened.replace_document(*gone)
    await begin(opened, key)
    assert await vectors.fill(key, NEW, embed) == 4
    await opened.delete_document(key, gone.document.id)
    await opened.replace_document(*make_document(key, ["The mirror.", "New."], generation=2))
    assert not await vectors.switch(key, NEW)
    assert await opened.fingerprint(key) == OLD
    assert await vectors.fill(key, NEW, embed) >= 1
    assert "New." in embed.texts
    assert await vectors.points(key, NEW) == await opened.points(key)
    assert await vectors.switch(key, NEW)
    for text in ("The mirror.", "New."):
        [hit, *_] = await opened.dense(key, vector_of(text, 16), 2)
        assert hit.score == pytest.approx(1, abs=2e-3)


async def test_the_old_vectors_are_kept_for_a_way_back(
    opened, key, embed, make_document, vector_of
):
    """Behaviour 23: only what came since is embedded with the old model."""
    vectors = opened.reembedding
    before = await opened.dense(key, vector_of(TEXTS[1]), 3)
    await begin(opened, key)
    await vectors.fill(key, NEW, embed)
    assert await vectors.switch(key, NEW)
    new = make_document(key, ["Since."], source="file:///new.txt", dimensions=16)
    await opened.replace_document(*new)
    await vectors.begin(key, fingerprint=OLD, dimensions=8)
    back = Embed(vector_of, 8)
    assert await vectors.fill(key, OLD, back) == 1
    assert back.texts == ["Since."]
    assert await vectors.switch(key, OLD)
    assert await opened.fingerprint(key) == OLD
    await opened.delete_document(key, new.document.id)
    after = await opened.dense(key, vector_of(TEXTS[1]), 3)
    assert [hit.chunk_id for hit in after] == [hit.chunk_id for hit in before]
    assert [hit.score for hit in after] == pytest.approx([hit.score for hit in before], abs=1e-6)


async def test_the_second_set_is_dropped(opened, key, embed, vector_of):
    """Behaviour 23: an old model's after its grace time, and one half filled."""
    vectors = opened.reembedding
    assert await vectors.drop_unused(key) is None
    await begin(opened, key)
    await vectors.fill(key, NEW, embed)
    with pytest.raises(ConfigError, match="still keeps vectors of the encoder model-b"):
        await vectors.begin(key, fingerprint="model-c", dimensions=8)
    assert await vectors.drop_unused(key) == NEW
    assert await vectors.fill(key, NEW, embed) == 0
    assert not await vectors.switch(key, NEW)
    await begin(opened, key)
    assert await vectors.fill(key, NEW, embed) == 3
    assert await vectors.switch(key, NEW)
    assert await vectors.drop_unused(key) == OLD
    assert await vectors.drop_unused(key) is None
    assert len(await opened.dense(key, vector_of(TEXTS[0], 16), 9)) == 3


async def test_what_has_no_place_is_refused(opened, key, vector_of):
    vectors = opened.reembedding
    with pytest.raises(ConfigError, match="is of the encoder model-a already"):
        await vectors.begin(key, fingerprint=OLD, dimensions=8)
    absent = CorpusKey(key.tenant, "absent")
    with pytest.raises(ConfigError, match="there is no corpus 'absent'"):
        await begin(opened, absent)
    with pytest.raises(ConfigError, match="4000 dimensions"):
        await vectors.begin(key, fingerprint=NEW, dimensions=4001)
    assert await vectors.drop_unused(absent) is None
    assert not await vectors.switch(absent, NEW)
    assert await vectors.points(absent, NEW) == {}
    await begin(opened, key)
    with pytest.raises(StageError, match=r"vectors of shape \(3, 9\), expected \(3, 16\)"):
        await vectors.fill(key, NEW, Embed(vector_of, 9))
    assert await opened.fingerprint(key) == OLD


async def test_vectors_of_the_old_model_are_refused_after_the_switch(
    opened, key, embed, make_document
):
    """Behaviour 23: a worker that began before the switch does not mix models."""
    old, new = (
        make_document(key, ["Late."], source="file:///late.txt", dimensions=n) for n in (8, 16)
    )
    await opened.replace_document(*old, fingerprint=OLD)
    await begin(opened, key)
    await opened.reembedding.fill(key, NEW, embed)
    assert await opened.reembedding.switch(key, NEW)
    with pytest.raises(ConfigError, match="is of the encoder model-b now, not of model-a"):
        await opened.replace_document(*old, fingerprint=OLD)
    await opened.replace_document(*new, fingerprint=NEW)


async def test_other_corpora_keep_their_model(opened, key, embed, make_document):
    """Behaviour 23."""
    other = CorpusKey(uuid4().hex, "other")
    await opened.open_corpus(other, fingerprint=OLD, dimensions=8)
    await opened.replace_document(*make_document(other, TEXTS))
    await begin(opened, key)
    await opened.reembedding.fill(key, NEW, embed)
    assert await opened.reembedding.switch(key, NEW)
    assert await opened.fingerprint(other) == OLD
    assert len(await opened.dense(other, np.ones(8, np.float32), 9)) == 3


async def test_a_switch_waits_for_writers_and_fails_whole(
    postgres_store, key, embed, make_document, conninfo
):
    """Behaviour 23: in PostgreSQL, a switch that fails leaves all as it was."""
    await postgres_store.open_corpus(key, fingerprint=OLD, dimensions=8)
    await postgres_store.replace_document(*make_document(key, TEXTS))
    vectors = postgres_store.reembedding
    await begin(postgres_store, key)
    await vectors.fill(key, NEW, embed)
    with psycopg.connect(conninfo) as writer:
        lock = "select pg_advisory_xact_lock_shared(hashtextextended(%s, hashtextextended(%s, 2)))"
        writer.execute(lock, (key.corpus, key.tenant))
        switching = asyncio.create_task(vectors.switch(key, NEW))
        await asyncio.sleep(0.3)
        assert not switching.done()
        assert await postgres_store.fingerprint(key) == OLD
        switching.cancel()
        with suppress(asyncio.CancelledError):
            await switching
    assert await postgres_store.fingerprint(key) == OLD
    assert len(await postgres_store.dense(key, np.ones(8, np.float32), 9)) == 3
    assert await vectors.switch(key, NEW)


async def test_a_killed_fill_repeats_no_batch(
    postgres_store, key, make_document, vector_of, monkeypatch
):
    """Behaviours 21 and 23: what was written before the kill is not embedded again."""
    monkeypatch.setattr("retrieval.stores.reembedding._BATCH_CHUNKS", 2)
    await postgres_store.open_corpus(key, fingerprint=OLD, dimensions=8)
    texts = [f"Text {number}." for number in range(5)]
    await postgres_store.replace_document(*make_document(key, texts))
    await begin(postgres_store, key)
    first = Embed(vector_of, dies_at=3)
    with suppress(KeyboardInterrupt):
        await postgres_store.reembedding.fill(key, NEW, first)
    rest = Embed(vector_of)
    assert await postgres_store.reembedding.fill(key, NEW, rest) == 1
    assert sorted(first.texts + rest.texts) == texts


async def test_a_fill_waits_for_who_removes_its_chunks(
    postgres_store, key, make_document, vector_of, conninfo
):
    """Behaviour 23: what goes meanwhile needs no new vector, and fails nobody."""
    await postgres_store.open_corpus(key, fingerprint=OLD, dimensions=8)
    going = make_document(key, ["Going."])
    await postgres_store.replace_document(*going)
    await begin(postgres_store, key)
    async with await psycopg.AsyncConnection.connect(conninfo) as remover:
        chunks = "delete from ragplane.chunks where document_id = %s"
        await remover.execute(chunks, (going.document.id,))
        filling = asyncio.create_task(postgres_store.reembedding.fill(key, NEW, Embed(vector_of)))
        await asyncio.sleep(0.3)
        assert not filling.done()
        await remover.commit()
        assert await filling == 0


async def test_a_fill_whose_set_is_dropped_says_so(postgres_store, key, make_document, vector_of):
    await postgres_store.open_corpus(key, fingerprint=OLD, dimensions=8)
    await postgres_store.replace_document(*make_document(key, TEXTS))
    await begin(postgres_store, key)
    embed = Embed(vector_of)

    async def dropped_meanwhile(chunks):
        await postgres_store.reembedding.drop_unused(key)
        return await embed(chunks)

    with pytest.raises(StageError, match="dropped meanwhile"):
        await postgres_store.reembedding.fill(key, NEW, dropped_meanwhile)
