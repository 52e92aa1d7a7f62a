"""A worker that slept through its lease writes nothing into the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.ledger.postgres import PostgresLedger
from ingest.ledger.records import Claim, LeaseLostError
from retrieval.stores.base import CorpusKey, Fence, Store
from retrieval.stores.connections import Connection
from retrieval.stores.database import Database
from retrieval.stores.memory import MemoryStore
from retrieval.stores.postgres import PostgresStore
from retrieval.stores.qdrant.edge import EdgeEngine
from retrieval.stores.qdrant.store import QdrantStore
from tests.integration.ingest.ledger_kit import claim_some, file, list_and_claim, listing, result


@pytest.fixture
def ledger(opened_database: Database) -> PostgresLedger:
    return PostgresLedger(opened_database.connections)


@pytest.fixture
async def postgres(opened_database: Database, key: CorpusKey) -> PostgresStore:
    store = PostgresStore(opened_database)
    await store.open_corpus(key, fingerprint="f", dimensions=8)
    return store


@pytest.fixture(params=["memory", "postgres", "qdrant-edge"])
async def store(
    request: pytest.FixtureRequest, opened_database: Database, key: CorpusKey, tmp_path: Path
) -> AsyncIterator[Store]:
    match request.param:
        case "memory":
            opened: Store = MemoryStore()
        case "postgres":
            opened = PostgresStore(opened_database)
        case _:
            opened = QdrantStore(EdgeEngine(tmp_path / "qdrant"))
    await opened.open_corpus(key, fingerprint="f", dimensions=8)
    yield opened
    if request.param == "qdrant-edge":
        await opened.aclose()


async def write(store: Store, claim: Claim, text: str, fence: Fence) -> None:
    done = result(claim, [text])
    vectors = np.ones((1, 8), np.float32)
    await store.replace_document(done.document, done.pages, done.chunks, vectors, fence=fence)


async def texts(store: Store, key: CorpusKey) -> list[str | None]:
    return [
        await store.accepted_text(key, document.id)
        for document in (await store.documents(key)).values()
    ]


async def take_over(ledger: PostgresLedger, store: Store, key: CorpusKey) -> None:
    """Another worker reads the document and finishes it."""
    await ledger.expire(key, await ledger.holders(key))
    [claim] = await claim_some(ledger, key, "new")
    await write(store, claim, "new", ledger.fence(claim))
    await ledger.finish_document(claim, result(claim, ["new"]))


async def test_a_late_write_is_refused(
    ledger: PostgresLedger, store: Store, key: CorpusKey
) -> None:
    """Behaviours 19 and 20."""
    [old] = await list_and_claim(ledger, key, file("a", "a"))
    await take_over(ledger, store, key)
    with pytest.raises(LeaseLostError):
        await write(store, old, "old", ledger.fence(old))
    assert await texts(store, key) == ["new"]
    assert await store.points(key) == await ledger.manifest(key)


async def test_a_late_deletion_is_refused(
    ledger: PostgresLedger, store: Store, key: CorpusKey
) -> None:
    """Behaviour 22: the document was listed again and read meanwhile."""
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    await write(store, claim, "first", ledger.fence(claim))
    await ledger.finish_document(claim, result(claim, ["first"]))
    await ledger.tombstone(key, [claim.source])
    [tombstone] = await claim_some(ledger, key)
    await ledger.sync(key, listing(file("a", "a")), "p1")
    await take_over(ledger, store, key)
    with pytest.raises(LeaseLostError):
        await store.delete_document(key, claim.document_id, fence=ledger.fence(tombstone))
    assert await texts(store, key) == ["new"]


class Watched:
    """A fence that does something first, and something once it held."""

    def __init__(self, fence: Fence) -> None:
        self.fence = fence

    async def before(self) -> None: ...

    async def after(self) -> None: ...

    async def check(self) -> None:
        await self.before()
        await self.fence.check()

    async def check_in(self, connection: Connection) -> None:
        await self.before()
        await self.fence.check_in(connection)
        await self.after()


async def test_a_claim_lost_in_mid_write_undoes_the_write(
    ledger: PostgresLedger, postgres: PostgresStore, key: CorpusKey
) -> None:
    """Behaviour 20: the worker slept inside its transaction."""
    [old] = await list_and_claim(ledger, key, file("a", "a"))

    class Slept(Watched):
        async def before(self) -> None:
            await ledger.expire(key, ["w"])
            await claim_some(ledger, key, "new")

    with pytest.raises(LeaseLostError):
        await write(postgres, old, "old", Slept(ledger.fence(old)))
    assert await postgres.documents(key) == {}


async def test_nobody_takes_a_document_between_the_check_and_the_commit(
    ledger: PostgresLedger, postgres: PostgresStore, key: CorpusKey
) -> None:
    """Behaviour 20: however late it is."""
    [old] = await list_and_claim(ledger, key, file("a", "a"))
    taken: list[list[Claim]] = []

    class Late(Watched):
        async def after(self) -> None:
            taken.append(await claim_some(ledger, key, "new"))

    await ledger.expire(key, ["w"])
    await write(postgres, old, "old", Late(ledger.fence(old)))
    assert taken == [[]]
    assert await texts(postgres, key) == ["old"]
    [new] = await claim_some(ledger, key, "new")
    assert replace(new, token=old.token, attempts=old.attempts) == old
