"""A database of an older version is brought forward, and loses nothing."""

from dataclasses import replace

import numpy as np
import psycopg
import pytest

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, StageError
from ragplane.core.schema import BBox, Note
from retrieval.stores.base import CorpusKey
from retrieval.stores.connections import SCHEMA_VERSION
from retrieval.stores.postgres import PostgresStore
from retrieval.stores.sql import schema_steps, statement

_VERSION_1 = """
insert into ragplane.corpora (tenant, name, fingerprint, dimensions, chunk_count, term_total)
values ('t', 'c', 'f', 8, 1, 2);
insert into ragplane.documents (id, corpus_id, source, sha256, mime, title, generation)
select '00000000-0000-0000-0000-000000000001', id, 'file:///a', '1', 'text/plain', 'A', 4
from ragplane.corpora;
insert into ragplane.pages values
    ('00000000-0000-0000-0000-000000000001', 1, 595, 842, 0, 'text', 'because', '{}',
     'The mirror.', '[]', 0.5);
insert into ragplane.chunks
select '00000000-0000-0000-0000-000000000002', id, '00000000-0000-0000-0000-000000000001', 0,
    'The mirror.', '', '{Part}', 1, 1, 0, 11, 3, '2', 8, '[1,0,0,0,0,0,0,0]', 2
from ragplane.corpora;
insert into ragplane.postings
select id, 'mirror', '00000000-0000-0000-0000-000000000002', 1, 2 from ragplane.corpora;
"""


@pytest.fixture
def version_1(database):
    """A database as version 1 left it, with a document."""
    with psycopg.connect(database) as connection:
        connection.execute(statement("create_version"))
        connection.execute(schema_steps()[0])
        connection.execute(statement("set_version"), {"version": 1})
        connection.execute(_VERSION_1)
    return database


async def test_a_version_1_database_keeps_its_documents(version_1, key, make_document):
    store = await PostgresStore.open(Settings(database_url=version_1))
    old = type(key)("t", "c")
    [document] = (await store.documents(old)).values()
    assert document.generation == 4
    assert await store.accepted_text(old, document.id) == "The mirror."
    [hit] = await store.lexical(old, "mirror", 5)
    chunk, _ = (await store.chunks(old, [hit.chunk_id]))[hit.chunk_id]
    assert (chunk.text, chunk.heading_path, chunk.boxes) == ("The mirror.", ("Part",), ())
    assert [h.chunk_id for h in await store.dense(old, np.ones(8, np.float32), 5)] == [chunk.id]
    assert (await store.status(old)).chunks == 1
    await store.open_corpus(key, fingerprint="f", dimensions=8)
    await store.replace_document(*make_document(key, ["The dome."]))
    await store.aclose()
    with psycopg.connect(version_1) as connection:
        assert connection.execute("select version from ragplane.schema_version").fetchall() == [
            (SCHEMA_VERSION,)
        ]
        assert connection.execute("select count(*) from ragplane.ledger_documents").fetchone() == (
            0,
        )


async def test_a_step_that_fails_leaves_the_old_version(version_1):
    with psycopg.connect(version_1) as connection:
        connection.execute("alter table ragplane.pages add column error text")
    with pytest.raises(ConfigError, match=r'column "error".* already exists'):
        await PostgresStore.open(Settings(database_url=version_1))
    with psycopg.connect(version_1) as connection:
        assert connection.execute("select version from ragplane.schema_version").fetchone() == (1,)
        columns = "select 1 from information_schema.columns where column_name = 'vlm_tokens'"
        assert connection.execute(columns).fetchone() is None


async def test_what_a_page_came_to_is_stored(postgres_store, key, make_document, conninfo):
    document, pages, chunks, vectors = make_document(key, ["The mirror."])
    await postgres_store.open_corpus(key, fingerprint="f", dimensions=8)
    note = Note("hidden", "white text", BBox(1, 2, 3, 4))
    failed = StageError("ocr", "no memory", page=1)
    page = replace(pages[0], confidence=0.75, vlm_tokens=90, notes=(note,), error=failed)
    await postgres_store.replace_document(document, [page], chunks, vectors)
    query = "select confidence, vlm_tokens, notes, error from ragplane.pages where document_id = %s"
    with psycopg.connect(conninfo) as connection:
        row = connection.execute(query, (document.id,)).fetchone()
    assert row == (
        0.75,
        90,
        [{"kind": "hidden", "text": "white text", "bbox": [1, 2, 3, 4]}],
        {"stage": "ocr", "cause": "no memory"},
    )


_SECOND = """
update ragplane.corpora set second_fingerprint = 'g', second_dimensions = 2;
insert into ragplane.second_vectors values ('00000000-0000-0000-0000-000000000002', '[0,1]');
"""


async def test_vectors_that_stood_with_their_chunks_are_kept_apart(version_1):
    """Behaviour 23: those in use, with their index, and the second set."""
    steps = schema_steps()
    before = next(n for n, step in enumerate(steps) if b"create table ragplane.vectors" in step)
    with psycopg.connect(version_1) as connection:
        for step in steps[1:before]:
            connection.execute(step)
        connection.execute(statement("set_version"), {"version": before})
        connection.execute(_SECOND)
        connection.execute(
            "insert into ragplane.corpora (tenant, name, fingerprint, dimensions) "
            "values ('t', 'empty', 'h', 3)"
        )
    store = await PostgresStore.open(Settings(database_url=version_1))
    key = CorpusKey("t", "c")
    [hit] = await store.dense(key, np.eye(8, dtype=np.float32)[0], 5)
    assert hit.score == pytest.approx(1)
    assert await store.reembedding.switch(key, "g")
    [same] = await store.dense(key, np.array([0, 1], np.float32), 5)
    assert (same.chunk_id, same.score) == (hit.chunk_id, pytest.approx(1))
    await store.aclose()
    with psycopg.connect(version_1) as connection:
        indexes = connection.execute("select indexname from pg_indexes where tablename = 'vectors'")
        names = {name for (name,) in indexes}
    assert {f"vectors_embedding_{length}" for length in (8, 2, 3)} <= names
