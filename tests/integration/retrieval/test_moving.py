"""A document that moved to another source."""

from dataclasses import replace
from uuid import uuid4

import pytest

from retrieval.stores.memory import MemoryStore


@pytest.fixture(params=["memory", "postgres"])
def store(request):
    memory = request.param == "memory"
    return MemoryStore() if memory else request.getfixturevalue("postgres_store")


async def test_a_document_may_move_to_a_source_longer_than_an_index_entry(
    store, key, make_document
):
    await store.open_corpus(key, fingerprint="model-a", dimensions=8)
    moving = make_document(key, ["The mirror."])
    await store.replace_document(*moving)
    far = "file:///" + "".join(uuid4().hex for _ in range(300))
    await store.move_document(key, moving.document.id, far)
    assert set(await store.documents(key)) == {far}


async def test_a_moved_document_keeps_its_points(store, key, make_document):
    """Behaviour 19."""
    await store.open_corpus(key, fingerprint="model-a", dimensions=8)
    moving = make_document(key, ["The mirror.", "The dome."])
    overwritten = make_document(key, ["Old."], source="file:///b.txt")
    for parts in (moving, overwritten):
        await store.replace_document(*parts)
    await store.move_document(key, moving.document.id, "file:///b.txt")
    await store.move_document(key, uuid4(), "file:///b.txt")
    moved = replace(moving.document, source="file:///b.txt")
    assert await store.documents(key) == {"file:///b.txt": moved}
    assert set(await store.points(key)) == {chunk.id for chunk in moving.chunks}
    assert (await store.status(key)).chunks == 2
