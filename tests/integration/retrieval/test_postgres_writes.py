"""What PostgreSQL refuses of a document, and what a change of model writes."""

import math
from dataclasses import replace

import numpy as np
import psycopg
import pytest

from ragplane.core.errors import StageError


@pytest.fixture
async def opened(postgres_store, key):
    await postgres_store.open_corpus(key, fingerprint="model-a", dimensions=8)
    return postgres_store


async def test_what_the_database_refuses_is_the_documents_fault(opened, key, make_document):
    """Behaviour 25: numbers and JSON that have no form, wherever in the document they stand."""
    parts = make_document(key, ["text"])
    [page], [chunk] = parts.pages, parts.chunks
    pages = [
        replace(page, vlm_tokens=2**40),
        replace(page, signals=replace(page.signals, image_coverage=math.inf)),
        replace(page, rotation=2**31),
    ]
    for refused in pages:
        with pytest.raises(StageError, match=r"^store: file:///a\.txt "):
            await opened.replace_document(parts.document, [refused], [chunk], parts.vectors)
    with pytest.raises(StageError, match=r"^store: file:///a\.txt "):
        await opened.replace_document(
            parts.document, [page], [replace(chunk, tokens=2**31)], parts.vectors
        )
    with pytest.raises(StageError, match=r"^store: file:///a\.txt "):
        await opened.replace_document(
            replace(parts.document, generation=2**31), [page], [chunk], parts.vectors
        )
    assert await opened.documents(key) == {}


async def test_a_switch_of_models_writes_no_vector(opened, key, make_document, vector_of, conninfo):
    """Behaviour 23: what it costs does not grow with the corpus; the index was filled before."""

    async def embed(chunks):
        return np.array([vector_of(chunk.text, 16) for chunk in chunks], np.float32)

    await opened.replace_document(*make_document(key, ["The mirror.", "A dome."]))
    await opened.reembedding.begin(key, fingerprint="model-b", dimensions=16)
    await opened.reembedding.fill(key, "model-b", embed)
    rows = (
        "select v.ctid::text, v.xmin::text, h.ctid::text, h.xmin::text from ragplane.vectors v "
        "join ragplane.chunks h on h.id = v.chunk_id join ragplane.corpora c on c.id = h.corpus_id "
        "where c.tenant = %s order by 1"
    )
    with psycopg.connect(conninfo, autocommit=True) as connection:
        before = connection.execute(rows, (key.tenant,)).fetchall()
        assert await opened.reembedding.switch(key, "model-b")
        assert connection.execute(rows, (key.tenant,)).fetchall() == before
    assert len(before) == 4
    [hit, _] = await opened.dense(key, vector_of("A dome.", 16), 2)
    assert hit.score == pytest.approx(1, abs=2e-3)
