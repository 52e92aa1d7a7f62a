"""What every store must do."""

from contextlib import suppress
from dataclasses import replace
from uuid import UUID, uuid4

import numpy as np
import pytest

from ragplane.core.errors import ConfigError, InputError, StageError
from retrieval.stores.base import CorpusKey, PointFact

TEXTS = [
    "The mirror is washed twice a year, in April and October.",
    "Code OBS-12/3b costs 1,250.50 crowns and weighs 3.5 kg.",
    "Der Spiegel wird zweimal im Jahr gewaschen.",
]


@pytest.fixture
async def opened(store, key):
    await store.open_corpus(key, fingerprint="model-a", dimensions=8)
    return store


async def _snapshot(store, key):
    documents = await store.documents(key)
    ids = [hit.chunk_id for hit in await store.dense(key, np.ones(8, np.float32), 1000)]
    texts = {doc.id: await store.accepted_text(key, doc.id) for doc in documents.values()}
    return documents, await store.chunks(key, ids), texts, await store.status(key)


async def test_an_unknown_corpus_is_empty(store, key, make_document):
    assert await store.fingerprint(key) is None
    assert await store.status(key) is None
    assert await store.documents(key) == {}
    assert await store.dense(key, np.ones(8, np.float32), 5) == []
    assert await store.lexical(key, "mirror", 5) == []
    assert await store.chunks(key, [uuid4()]) == {}
    assert await store.accepted_text(key, uuid4()) is None
    await store.delete_document(key, uuid4())
    with pytest.raises(StageError, match=r"store: file:///a\.txt there is no corpus 'manuals'"):
        await store.replace_document(*make_document(key, TEXTS))


async def test_open_corpus_twice_is_fine(opened, key):
    await opened.open_corpus(key, fingerprint="model-a", dimensions=8)
    assert await opened.fingerprint(key) == "model-a"


@pytest.mark.parametrize(("fingerprint", "dimensions"), [("model-b", 8), ("model-a", 16)])
async def test_another_model_is_refused(opened, key, fingerprint, dimensions):
    with pytest.raises(ConfigError, match="made with the encoder model-a"):
        await opened.open_corpus(key, fingerprint=fingerprint, dimensions=dimensions)


async def test_what_was_written_is_read_back(opened, key, make_document, vector_of):
    parts = make_document(key, TEXTS)
    await opened.replace_document(*parts)
    assert await opened.documents(key) == {parts.document.source: parts.document}
    ids = [chunk.id for chunk in parts.chunks]
    assert await opened.chunks(key, [*ids, uuid4()]) == {
        chunk.id: (chunk, parts.document) for chunk in parts.chunks
    }
    accepted = await opened.accepted_text(key, parts.document.id)
    assert accepted == "\n".join(TEXTS)
    assert all(accepted[chunk.start : chunk.end] == chunk.text for chunk in parts.chunks)
    [hit, *_] = await opened.dense(key, 7 * vector_of(TEXTS[1]), 3)
    assert hit.chunk_id == ids[1]
    assert hit.score == pytest.approx(1, abs=2e-3)


async def test_an_unwritten_document_has_no_text(opened, key, make_document):
    await opened.replace_document(*make_document(key, TEXTS))
    assert await opened.accepted_text(key, uuid4()) is None


async def test_blank_pages_are_left_out_of_the_text_and_counted(opened, key, make_document):
    parts = make_document(key, ["one", "", "two"])
    chunks = [chunk for chunk in parts.chunks if chunk.text]
    await opened.replace_document(parts.document, parts.pages, chunks, parts.vectors[[0, 2]])
    assert await opened.accepted_text(key, parts.document.id) == "one\ntwo"
    status = await opened.status(key)
    assert (status.pages, status.chunks, status.tokens) == ({"text": 2, "blank": 1}, 2, 2)


async def test_a_document_without_pages_and_chunks(opened, key, make_document):
    parts = make_document(key, [])
    await opened.replace_document(*parts)
    assert await opened.accepted_text(key, parts.document.id) == ""
    assert (await opened.status(key)).documents == 1
    assert await opened.lexical(key, "mirror", 5) == []


async def test_running_twice_changes_nothing(opened, key, make_document):
    parts = make_document(key, TEXTS)
    await opened.replace_document(*parts)
    once = await _snapshot(opened, key), await opened.lexical(key, "mirror year", 9)
    await opened.replace_document(*parts)
    assert (await _snapshot(opened, key), await opened.lexical(key, "mirror year", 9)) == once


async def test_a_new_generation_replaces_the_old(opened, key, make_document):
    await opened.replace_document(*make_document(key, TEXTS))
    parts = make_document(key, ["The dome turns."], generation=2)
    await opened.replace_document(*parts)
    documents, chunks, texts, status = await _snapshot(opened, key)
    assert [document.generation for document in documents.values()] == [2]
    assert [chunk.text for chunk, _ in chunks.values()] == ["The dome turns."]
    assert list(texts.values()) == ["The dome turns."]
    assert (status.documents, status.chunks, status.pages) == (1, 1, {"text": 1})
    assert await opened.lexical(key, "mirror", 5) == []
    assert len(await opened.lexical(key, "dome", 5)) == 1


async def test_a_source_under_a_new_id_replaces_the_old(opened, key, make_document):
    await opened.replace_document(*make_document(key, TEXTS))
    parts = make_document(key, TEXTS[:1])
    document = replace(parts.document, id=uuid4())
    chunks = [replace(chunk, document_id=document.id) for chunk in parts.chunks]
    await opened.replace_document(document, parts.pages, chunks, parts.vectors)
    documents, found, _, status = await _snapshot(opened, key)
    assert [doc.id for doc in documents.values()] == [document.id]
    assert (len(found), status.documents, status.chunks) == (1, 1, 1)


async def test_delete(opened, key, make_document):
    kept = make_document(key, ["The dome turns."], source="file:///kept.txt")
    gone = make_document(key, TEXTS)
    await opened.replace_document(*kept)
    before = await _snapshot(opened, key)
    await opened.replace_document(*gone)
    await opened.delete_document(key, gone.document.id)
    assert await _snapshot(opened, key) == before
    assert await opened.lexical(key, "mirror OBS-12/3b", 5) == []
    await opened.delete_document(key, gone.document.id)
    assert await _snapshot(opened, key) == before


async def test_a_refused_document_leaves_the_old_one(opened, key, make_document):
    await opened.replace_document(*make_document(key, TEXTS))
    before = await _snapshot(opened, key)
    parts = make_document(key, ["new", "text"], generation=2)
    with pytest.raises(StageError, match="shape"):
        await opened.replace_document(*parts[:3], parts.vectors[:1])
    with pytest.raises(StageError, match="NUL"):
        await opened.replace_document(*make_document(key, ["a\x00b"], generation=2))
    assert await _snapshot(opened, key) == before


async def test_ids_of_another_document_are_refused(opened, key, make_document):
    first = make_document(key, TEXTS)
    await opened.replace_document(*first)
    before = await _snapshot(opened, key)
    other = make_document(key, ["The dome turns."], source="file:///other.txt")
    stolen = [replace(other.chunks[0], id=first.chunks[0].id)]
    with pytest.raises(StageError, match=r"store: file:///other\.txt"):
        await opened.replace_document(other.document, other.pages, stolen, other.vectors)
    assert await _snapshot(opened, key) == before


async def test_nothing_reaches_across_tenants_or_corpora(opened, key, make_document, vector_of):
    mine = make_document(key, TEXTS)
    await opened.replace_document(*mine)
    for stranger in (CorpusKey(uuid4().hex, key.corpus), CorpusKey(key.tenant, "other")):
        await opened.open_corpus(stranger, fingerprint="model-a", dimensions=8)
        assert await opened.dense(stranger, vector_of(TEXTS[0]), 10) == []
        assert await opened.lexical(stranger, TEXTS[0], 10) == []
        assert await opened.chunks(stranger, [chunk.id for chunk in mine.chunks]) == {}
        assert await opened.accepted_text(stranger, mine.document.id) is None
        assert await opened.documents(stranger) == {}
        await opened.delete_document(stranger, mine.document.id)
        theirs = make_document(stranger, TEXTS)
        await opened.replace_document(*theirs)
        found = await opened.dense(stranger, vector_of(TEXTS[0]), 10)
        assert {hit.chunk_id for hit in found} == {chunk.id for chunk in theirs.chunks}
        found = await opened.lexical(stranger, TEXTS[0], 10)
        assert {hit.chunk_id for hit in found} <= {chunk.id for chunk in theirs.chunks}
    assert len((await _snapshot(opened, key))[1]) == len(TEXTS)


async def test_a_document_of_another_tenant_is_not_taken_over(opened, key, make_document):
    mine = make_document(key, TEXTS)
    await opened.replace_document(*mine)
    before = await _snapshot(opened, key)
    stranger = CorpusKey(uuid4().hex, key.corpus)
    await opened.open_corpus(stranger, fingerprint="model-a", dimensions=8)
    with pytest.raises(StageError, match="its id is taken"):
        await opened.replace_document(replace(mine.document, tenant=stranger.tenant), *mine[1:])
    assert await _snapshot(opened, key) == before


async def test_a_document_of_another_corpus_is_not_taken_over(opened, key, make_document):
    """A store may keep ids apart by corpus, or refuse to use one twice."""
    mine = make_document(key, TEXTS)
    await opened.replace_document(*mine)
    before = await _snapshot(opened, key)
    await opened.open_corpus(CorpusKey(key.tenant, "other"), fingerprint="model-a", dimensions=8)
    with suppress(StageError):
        await opened.replace_document(replace(mine.document, corpus="other"), *mine[1:])
    assert await _snapshot(opened, key) == before


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("washing mirrors", 0),
        ("obs-12/3B", 1),
        ("12/3b", 1),
        ("1250.50", 1),
        ("1,250.50", 1),
        ("3.5", 1),
        ("GEWASCHEN", 2),
    ],
)
async def test_lexical_finds_forms_codes_and_numbers(opened, key, make_document, query, expected):
    parts = make_document(key, TEXTS)
    await opened.replace_document(*parts)
    [hit, *_] = await opened.lexical(key, query, 5)
    assert hit.chunk_id == parts.chunks[expected].id
    assert hit.score > 0


@pytest.mark.parametrize("query", ["", "  ", "?!", "absent", "🚀"])
async def test_lexical_without_a_known_term_finds_nothing(opened, key, make_document, query):
    await opened.replace_document(*make_document(key, TEXTS))
    assert await opened.lexical(key, query, 5) == []


async def test_the_prefix_is_searched_too(opened, key, make_document):
    parts = make_document(key, ["42 crowns"])
    chunks = [replace(parts.chunks[0], prefix="Price list")]
    await opened.replace_document(*parts[:2], chunks, parts.vectors)
    assert len(await opened.lexical(key, "price", 5)) == 1


async def test_equal_scores_are_in_the_order_of_their_ids(opened, key, make_document):
    sources = [f"file:///{number}.txt" for number in range(12)]
    for source in sources:
        await opened.replace_document(*make_document(key, TEXTS[:2], source=source))
    for found in (
        await opened.lexical(key, TEXTS[0], 12),
        await opened.dense(key, np.ones(8, np.float32), 12),
    ):
        assert len({hit.score for hit in found}) == 1
        assert [hit.chunk_id for hit in found] == sorted(hit.chunk_id for hit in found)


async def test_the_limit_holds(opened, key, make_document):
    await opened.replace_document(*make_document(key, [f"mirror {n}" for n in range(30)]))
    assert len(await opened.dense(key, np.ones(8, np.float32), 7)) == 7
    assert len(await opened.lexical(key, "mirror", 7)) == 7


@pytest.mark.parametrize("size", [7, 9])
async def test_a_query_vector_of_another_length_is_refused(opened, key, size):
    with pytest.raises(InputError, match="shape"):
        await opened.dense(key, np.ones(size, np.float32), 5)


@pytest.mark.parametrize(
    "text", ["🚀👩‍🚀 start", "שלום 123 עולם", "\u202bمرحبا\u202c", "𝔘𝔫𝔦 𠜎𠜱", "a\tb\r\n'\"\\%s{}"]
)
async def test_any_text_survives(opened, key, make_document, text):
    parts = make_document(key, [text], source=f"file:///{text}")
    await opened.replace_document(*parts)
    chunk_id = parts.chunks[0].id
    assert (await opened.chunks(key, [chunk_id]))[chunk_id] == (parts.chunks[0], parts.document)
    assert await opened.accepted_text(key, parts.document.id) == text
    assert list(await opened.documents(key)) == [f"file:///{text}"]


async def test_corpora_of_several_dimensions_live_side_by_side(store, key, make_document):
    wide = CorpusKey(key.tenant, "wide")
    await store.open_corpus(key, fingerprint="a", dimensions=8)
    await store.open_corpus(wide, fingerprint="b", dimensions=24)
    await store.replace_document(*make_document(key, TEXTS))
    await store.replace_document(*make_document(wide, TEXTS, dimensions=24))
    assert len(await store.dense(key, np.ones(8, np.float32), 9)) == 3
    assert len(await store.dense(wide, np.ones(24, np.float32), 9)) == 3
    assert (await store.status(wide)).dimensions == 24


async def test_ids_may_be_any_uuid(opened, key, make_document):
    parts = make_document(key, ["low", "high"])
    ids = [UUID(int=uuid4().int >> 64), UUID(int=uuid4().int | (0xFFFF << 112))]
    chunks = [replace(chunk, id=id_) for chunk, id_ in zip(parts.chunks, ids, strict=True)]
    await opened.replace_document(*parts[:2], chunks, parts.vectors)
    assert set(await opened.chunks(key, ids)) == set(ids)


async def test_points_are_listed_and_deleted(opened, key, make_document):
    """Behaviour 24."""
    first = make_document(key, TEXTS, generation=3)
    other = make_document(key, ["The dome."], source="file:///b.txt")
    for parts in (first, other):
        await opened.replace_document(*parts)
    expected = {
        chunk.id: PointFact(parts.document.id, parts.document.generation, chunk.sha256)
        for parts in (first, other)
        for chunk in parts.chunks
    }
    assert await opened.points(key) == expected
    gone = [first.chunks[1].id, other.chunks[0].id]
    stranger = CorpusKey(uuid4().hex, key.corpus)
    await opened.open_corpus(stranger, fingerprint="model-a", dimensions=8)
    assert await opened.points(stranger) == {}
    await opened.delete_points(stranger, gone)
    assert await opened.points(key) == expected
    await opened.delete_points(key, [*gone, uuid4()])
    assert set(await opened.points(key)) == set(expected) - set(gone)
    assert len(await opened.documents(key)) == 2
    assert (await opened.status(key)).chunks == 2
    assert await opened.lexical(key, "dome", 5) == []
