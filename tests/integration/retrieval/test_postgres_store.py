"""What only the PostgreSQL store does: indexes, transactions, schema versions, connections."""

import asyncio
import os
import random
import sys
import time
from uuid import uuid4

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, StageError, UnavailableError
from retrieval.stores import connections, open_store, plan, postgres
from retrieval.stores.base import CorpusKey
from retrieval.stores.connections import SCHEMA_VERSION, Connections
from retrieval.stores.memory import MemoryStore
from retrieval.stores.postgres import PostgresStore
from retrieval.stores.sql import statement


@pytest.fixture
async def opened(postgres_store, key):
    await postgres_store.open_corpus(key, fingerprint="model-a", dimensions=8)
    return postgres_store


def _words(rng, count):
    vocabulary = [f"w{number}x" for number in range(60)]
    weights = [1 / rank for rank in range(1, 61)]
    return " ".join(rng.choices(vocabulary, weights, k=count))


async def _fill(stores, key, make_document, rng, documents=12, chunks=10):
    for store in stores:
        await store.open_corpus(key, fingerprint="model-a", dimensions=8)
    for number in range(documents):
        texts = [_words(rng, rng.randint(3, 30)) for _ in range(chunks)]
        parts = make_document(key, texts, source=f"file:///{number}")
        for store in stores:
            await store.replace_document(*parts)


async def test_lexical_is_bm25(postgres_store, key, make_document):
    rng, exact = random.Random(1), MemoryStore()
    await _fill([postgres_store, exact], key, make_document, rng)
    for _ in range(60):
        query = _words(rng, rng.randint(1, 6))
        expected = await exact.lexical(key, query, 200)
        found = await postgres_store.lexical(key, query, 200)
        assert {hit.chunk_id: pytest.approx(hit.score, abs=1e-8) for hit in expected} == {
            hit.chunk_id: hit.score for hit in found
        }
        assert [hit.score for hit in found] == sorted((h.score for h in found), reverse=True)


async def test_lexical_under_binding_caps(postgres_store, key, make_document, monkeypatch):
    rng, exact = random.Random(2), MemoryStore()
    await _fill([postgres_store, exact], key, make_document, rng)
    monkeypatch.setattr(plan, "DRIVING_POSTINGS", 30)
    monkeypatch.setattr(postgres, "RESCORED_CHUNKS", 20)
    for _ in range(30):
        query = _words(rng, 5)
        expected = {hit.chunk_id: hit.score for hit in await exact.lexical(key, query, 200)}
        found = await postgres_store.lexical(key, query, 10)
        assert len(found) == min(10, len(expected))
        for hit in found:
            assert hit.score == pytest.approx(expected[hit.chunk_id], abs=1e-8)


async def test_dense_agrees_with_exact_search(postgres_store, key, make_document):
    rng, exact = random.Random(3), MemoryStore()
    await _fill([postgres_store, exact], key, make_document, rng)
    query = np.arange(8, dtype=np.float32) - 3
    expected = await exact.dense(key, query, 20)
    found = await postgres_store.dense(key, query, 20)
    assert [hit.score for hit in found] == pytest.approx([h.score for h in expected], abs=2e-3)


async def test_the_index_gives_k_results_under_the_filter(
    postgres_store, key, make_document, monkeypatch
):
    monkeypatch.setattr(postgres, "EXACT_CHUNKS", 0)
    rng, small = random.Random(4), CorpusKey(uuid4().hex, "small")
    await _fill([postgres_store], key, make_document, rng, documents=10, chunks=60)
    await _fill([postgres_store], small, make_document, rng, documents=1, chunks=25)
    for _ in range(5):
        query = np.array([rng.gauss(0, 1) for _ in range(8)], dtype=np.float32)
        found = await postgres_store.dense(small, query, 20)
        assert len(found) == 20
        ids = [hit.chunk_id for hit in found]
        assert len(await postgres_store.chunks(small, ids)) == 20
        assert [hit.score for hit in found] == sorted((h.score for h in found), reverse=True)


async def test_the_dense_query_can_use_the_index(opened, conninfo):
    query = statement("dense", dimensions=8)
    parameters = {"corpus_id": 1, "slot": 0, "vector": str([0.1] * 8), "limit": 10}
    with psycopg.connect(conninfo) as connection:
        # The table is small here: without these the planner would rightly read it whole.
        connection.execute("set enable_seqscan = off; set enable_sort = off")
        lines = connection.execute(b"explain " + query, parameters).fetchall()
    assert any("Index Scan using vectors_embedding_8" in line for (line,) in lines)


async def test_concurrent_writers_of_one_document(opened, key, make_document):
    generations = [
        make_document(key, [f"text {n} of {g}" for n in range(g + 2)], generation=g)
        for g in range(1, 7)
    ]
    others = [make_document(key, ["other"], source=f"file:///{n}") for n in range(6)]
    await asyncio.gather(
        *(opened.replace_document(*parts) for parts in [*generations, *others, *generations])
    )
    documents = await opened.documents(key)
    assert len(documents) == 7
    [written] = [parts for parts in generations if parts.document in documents.values()]
    assert await opened.accepted_text(key, written.document.id) == "\n".join(
        page.text for page in written.pages
    )
    assert (await opened.status(key)).chunks == len(written.chunks) + 6
    await asyncio.gather(
        *(opened.delete_document(key, document.id) for document in documents.values()),
        *(opened.delete_document(key, document.id) for document in documents.values()),
    )
    assert (await opened.status(key)).chunks == 0


async def test_totals_follow_the_rows(opened, key, make_document, conninfo):
    rng = random.Random(5)
    for _ in range(30):
        source = f"file:///{rng.randrange(4)}"
        parts = make_document(key, [_words(rng, 5)] * rng.randrange(3), source=source)
        if rng.random() < 0.3:
            await opened.delete_document(key, parts.document.id)
        else:
            await opened.replace_document(*parts)
    with psycopg.connect(conninfo) as connection:
        row = connection.execute(
            "select chunk_count, term_total, (select count(*) from ragplane.chunks where "
            "corpus_id = c.id), (select coalesce(sum(term_count), 0) from ragplane.chunks where "
            "corpus_id = c.id), (select coalesce(sum(tf), 0) from ragplane.postings where "
            "corpus_id = c.id) from ragplane.corpora c where tenant = %s",
            (key.tenant,),
        ).fetchone()
    assert row[0] == row[2]
    assert row[1] == row[3] == row[4]


_WRITER = """
import asyncio, sys, numpy as np
from pathlib import Path
from uuid import UUID
from ragplane.core.config import Settings
from ragplane.core.schema import Chunk, Document
from retrieval.stores import open_store

async def main(home, tenant, id_):
    store = await open_store(Settings(home=Path(home)))
    document = Document(
        UUID(id_), tenant, "manuals", "file:///a.txt", "1" * 64, "text/plain", "A", 2
    )
    chunk = Chunk(UUID(int=UUID(id_).int + 1), document.id, 0, "new", "", (), 1, 1, 0, 3, 3, "1")
    await store.replace_document(document, [], [chunk], np.ones((1, 8), np.float32))
    await store.aclose()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_kill_in_the_middle_of_a_write(opened, key, make_document, conninfo, postgres_home):
    parts = make_document(key, ["The mirror.", "The dome."])
    await opened.replace_document(*parts)
    command = [sys.executable, "-c", _WRITER, str(postgres_home), key.tenant]
    command.append(str(parts.document.id))
    with psycopg.connect(conninfo) as blocker:
        # The writer has removed the old chunks and written the new by the time it waits here.
        blocker.execute("lock table ragplane.postings in share row exclusive mode")
        writer = await asyncio.create_subprocess_exec(*command)
        await _wait_until(blocker, "select 1 from pg_locks where not granted")
        writer.kill()
        await writer.wait()
    assert await opened.accepted_text(key, parts.document.id) == "The mirror.\nThe dome."
    assert len(await opened.lexical(key, "mirror dome", 5)) == 2
    again = await asyncio.create_subprocess_exec(*command)
    assert await again.wait() == 0
    status = await opened.status(key)
    assert (status.documents, status.chunks, status.tokens) == (1, 1, 3)
    assert await opened.lexical(key, "mirror dome", 5) == []
    assert len(await opened.lexical(key, "new", 5)) == 1


async def _wait_until(connection, query):
    deadline = time.monotonic() + 20
    while connection.execute(query).fetchone() is None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def test_a_new_database_is_prepared_by_whoever_comes_first(database, key):
    settings = Settings(database_url=database)
    stores = await asyncio.gather(*(open_store(settings) for _ in range(4)))
    await asyncio.gather(
        *(store.open_corpus(key, fingerprint="f", dimensions=12) for store in stores)
    )
    assert [await store.fingerprint(key) for store in stores] == ["f"] * 4
    for store in stores:
        await store.aclose()


async def test_a_newer_schema_is_refused(database):
    settings = Settings(database_url=database)
    await (await open_store(settings)).aclose()
    with psycopg.connect(database) as connection:
        connection.execute("update ragplane.schema_version set version = version + 1")
    with pytest.raises(ConfigError, match=f"version {SCHEMA_VERSION + 1}"):
        await open_store(settings)


async def test_a_user_without_rights_is_told(database):
    with psycopg.connect(database) as connection:
        connection.execute("create role guest login")
    settings = Settings(database_url=make_conninfo(database, user="guest"))
    with pytest.raises(ConfigError, match="permission denied"):
        await open_store(settings)


async def test_a_prepared_database_needs_no_more_rights(database, key):
    await (await open_store(Settings(database_url=database))).aclose()
    with psycopg.connect(database) as connection:
        connection.execute(
            "create role reader login; "
            "grant usage on schema ragplane to reader; "
            "grant select on all tables in schema ragplane to reader"
        )
    store = await open_store(Settings(database_url=make_conninfo(database, user="reader")))
    assert await store.status(key) is None
    await store.aclose()


async def test_what_the_role_or_the_database_may_not_do_is_named(database, key, make_document):
    owner = await PostgresStore.open(Settings(database_url=database))
    await owner.open_corpus(key, fingerprint="f", dimensions=8)
    with psycopg.connect(database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"create role {name} login; grant usage on schema ragplane to {name}")
        connection.execute(f"grant select on all tables in schema ragplane to {name}")
    reader = await PostgresStore.open(Settings(database_url=make_conninfo(database, user=name)))
    with pytest.raises(ConfigError, match=r"cannot delete a document: permission denied"):
        await reader.delete_document(key, uuid4())
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"alter database {name} set default_transaction_read_only = on")
    late = await PostgresStore.open(Settings(database_url=database))
    with pytest.raises(ConfigError, match=r"cannot store a document: .*read-only transaction"):
        await late.replace_document(*make_document(key, ["text"]))
    for store in (owner, reader, late):
        await store.aclose()


async def test_other_failures_are_named(database, key):
    store = await PostgresStore.open(Settings(database_url=database))
    await store.open_corpus(key, fingerprint="f", dimensions=8)
    with pytest.raises(StageError, match=r"^store: .* cannot open the corpus: .*NUL"):
        await store.open_corpus(CorpusKey("new", "new"), fingerprint="\x00", dimensions=8)
    with psycopg.connect(database) as connection:
        connection.execute("drop table ragplane.pages")
    with pytest.raises(ConfigError, match=r'cannot read status: .*"ragplane.pages" does not'):
        await store.status(key)
    await store.aclose()
    with pytest.raises(UnavailableError, match="cannot read status: the store is closed"):
        await store.status(key)


async def test_more_callers_than_connections_take_turns(conninfo, monkeypatch):
    monkeypatch.setattr(connections, "_MOST_CONNECTIONS", 1)
    monkeypatch.setattr(connections, "_TIMEOUT_S", 0.2)
    one = Connections(conninfo)
    async with one.transaction("hold it"):
        with pytest.raises(UnavailableError, match="all 1 connections are busy"):
            async with one.transaction("wait"):
                pass
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), one.transaction("sleep") as connection:
            await connection.execute("select pg_sleep(30)")
    async with one.transaction("be the next") as connection:
        assert await connection.execute("select 1")
    await one.aclose()


async def _during_the_search(monkeypatch, write):
    """Let `write` commit right after a search has read its corpus."""
    read_corpus = postgres._corpus

    async def read_then_write(connection, key):
        corpus = await read_corpus(connection, key)
        monkeypatch.setattr(postgres, "_corpus", read_corpus)
        await write
        return corpus

    monkeypatch.setattr(postgres, "_corpus", read_then_write)


async def test_a_search_during_the_first_write_sees_nothing(
    opened, key, make_document, monkeypatch
):
    write = opened.replace_document(*make_document(key, ["The mirror."]))
    await _during_the_search(monkeypatch, write)
    assert await opened.lexical(key, "mirror", 5) == []
    assert len(await opened.lexical(key, "mirror", 5)) == 1


async def test_a_search_during_a_write_sees_what_was_before(
    opened, key, make_document, monkeypatch
):
    old, new = (make_document(key, [text]) for text in ("The mirror.", "A dome."))
    await opened.replace_document(*old)
    await _during_the_search(monkeypatch, opened.replace_document(*new))
    [hit] = await opened.dense(key, old.vectors[0], 5)
    assert hit.chunk_id == old.chunks[0].id
    [hit] = await opened.dense(key, old.vectors[0], 5)
    assert hit.chunk_id == new.chunks[0].id


async def test_a_host_that_is_down_is_named_and_the_password_is_not():
    url = "postgresql://me:hunter2@127.0.0.1:1/db"
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1.*refused") as caught:
        await open_store(Settings(database_url=url))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["hunter2", "http://me:hunter2@host/db", "a=hunter2"])
async def test_a_bad_url_is_refused_without_repeating_it(url):
    with pytest.raises(ConfigError, match="RAGPLANE_DATABASE_URL") as caught:
        await open_store(Settings(database_url=url))
    assert "hunter2" not in str(caught.value)


async def test_a_lost_connection_heals(database, key):
    store = await PostgresStore.open(Settings(database_url=database))
    await store.open_corpus(key, fingerprint="f", dimensions=8)
    with psycopg.connect(database) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where application_name = 'ragplane' and datname = current_database()"
        )
    assert await store.fingerprint(key) == "f"
    await store.aclose()


async def test_a_source_may_be_longer_than_an_index_entry(opened, key, make_document):
    source = "file:///" + os.urandom(4000).hex()
    for generation in (1, 2):
        parts = make_document(key, ["text"], source=source, generation=generation)
        await opened.replace_document(*parts)
    assert [document.generation for document in (await opened.documents(key)).values()] == [2]
