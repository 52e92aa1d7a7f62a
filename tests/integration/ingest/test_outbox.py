"""Pending moves and cached vectors, in PostgreSQL and in memory."""

from uuid import uuid4

import numpy as np
import pytest

from retrieval.stores.base import CorpusKey
from tests.integration.ingest.ledger_kit import file, listing, read_and_store


@pytest.fixture
def outbox(kept):
    return kept.outbox


async def _move(ledger, key, *names):
    """Documents that moved, in the order of their names; their new sources."""
    await read_and_store(ledger, key, *(file(name, name) for name in names))
    moved = [file(f"{name}-moved", name) for name in names]
    assert (await ledger.sync(key, listing(*moved), "p1")).moved == len(names)
    return [one.source for one in moved]


async def _take(outbox, key, worker="r", *, lease_s=60, limit=10):
    return await outbox.take(key, worker, lease_s=lease_s, limit=limit)


async def test_moves_wait_in_their_order_until_acknowledged(ledger, outbox, key):
    """Behaviour 19."""
    sources = await _move(ledger, key, "a", "b", "c")
    moves = await _take(outbox, key, limit=2)
    assert [move.source for move in moves] == sources[:2]
    rows = await ledger.documents(key)
    assert [move.document_id for move in moves] == [rows[source].id for source in sources[:2]]
    assert (await ledger.status(key)).writes == 3
    assert await _take(outbox, key, limit=2) == moves  # the same worker, started again
    await outbox.acknowledge(CorpusKey(key.tenant, "other"), [move.id for move in moves])
    await outbox.acknowledge(key, [move.id for move in moves])
    [last] = await _take(outbox, key)
    assert last.source == sources[2]
    await outbox.acknowledge(key, [last.id])
    await outbox.acknowledge(key, [last.id])
    assert (await ledger.status(key)).writes == 0


async def test_one_relay_at_a_time(ledger, outbox, key, kept):
    await _move(ledger, key, "a", "b")
    [first] = await _take(outbox, key, "r1", lease_s=0.3, limit=1)
    assert await _take(outbox, key, "r2") == []
    await kept.wait(0.35)
    taken = await _take(outbox, key, "r2")
    assert (taken[0], len(taken)) == (first, 2)


async def test_a_deletion_waits_for_moves_of_the_document(ledger, outbox, key):
    """Behaviour 22."""
    await ledger.tombstone(key, await _move(ledger, key, "a"))
    assert await ledger.claim(key, "w", lease_s=60, limit=10) == []
    assert key not in await ledger.waiting()
    await outbox.acknowledge(key, [move.id for move in await _take(outbox, key)])
    [claim] = await ledger.claim(key, "w", lease_s=60, limit=10)
    assert claim.tombstone


async def test_cached_vectors_come_back_exactly(kept):
    """Behaviour 21."""
    model, other = uuid4().hex, uuid4().hex
    vectors = {
        text: np.random.default_rng(seed).normal(size=16).astype(np.float32)
        for seed, text in enumerate("abc")
    }
    await kept.vectors.put(model, vectors)
    await kept.vectors.put(model, {"a": vectors["b"]})
    found = await kept.vectors.get(model, ["a", "c", "none"])
    assert set(found) == {"a", "c"}
    for text, vector in found.items():
        assert vector.dtype == np.float32
        assert np.array_equal(vector, vectors[text])
    assert await kept.vectors.get(other, ["a"]) == {}


async def test_the_oldest_vectors_are_dropped(kept):
    model = uuid4().hex
    await kept.vectors.prune(0)
    for text in ("old", "mid", "new"):
        await kept.vectors.put(model, {text: np.ones(4, np.float32)})
    assert await kept.vectors.prune(2) == 1
    assert set(await kept.vectors.get(model, ["old", "mid", "new"])) == {"mid", "new"}
    assert await kept.vectors.prune(2) == 0
