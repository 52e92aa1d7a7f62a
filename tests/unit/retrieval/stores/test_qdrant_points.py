from collections import Counter
from dataclasses import replace
from uuid import UUID, uuid4

import numpy as np
import orjson
import pytest

from ragplane.core.schema import BBox, Block, Chunk, Document, Page, PageBox, PageSignals
from retrieval.stores import bm25
from retrieval.stores.base import CorpusKey, PointFact
from retrieval.stores.qdrant import points
from retrieval.stores.qdrant.engine import Point, Record
from retrieval.stores.terms import terms

DOCUMENT = Document(
    id=UUID(int=7),
    tenant="acme",
    corpus="manuals",
    source="file:///a.txt",
    sha256="ab" * 32,
    mime="text/plain",
    title="A",
    generation=3,
)
CHUNK = Chunk(
    id=UUID(int=8),
    document_id=DOCUMENT.id,
    ordinal=2,
    text="The mirror, the mirror 🚀",
    prefix="Part",
    heading_path=("Part", "Two"),
    first_page=1,
    last_page=2,
    start=10,
    end=34,
    tokens=9,
    sha256="cd" * 32,
    boxes=(PageBox(1, BBox(1.5, 2.0, 3.25, 4.0)), PageBox(2, BBox(0.0, 0.0, 1.0, 1.0))),
)
UNIT = np.array([0.6, 0.8], np.float32)
SIGNALS = PageSignals(characters=1, words=1, unmapped_share=0, image_coverage=0, drawings=0)


def page(text: str, number: int = 1) -> Page:
    blocks = (Block("paragraph", text),) if text else ()
    return Page(number, 1.0, 1.0, 0, "text" if text else "blank", "", SIGNALS, blocks, 0.0)


def through_json(point: Point) -> Record:
    return Record(point.id, orjson.loads(orjson.dumps(point.payload)))


def test_a_chunk_survives_its_point():
    point = points.chunk_point(DOCUMENT, "v", CHUNK, UNIT)
    assert (point.id, point.dense) == (CHUNK.id, UNIT.tolist())
    record = through_json(point)
    assert points.chunk_from(record, "v") == CHUNK
    assert points.fact_from(record) == PointFact(DOCUMENT.id, 3, CHUNK.sha256)
    assert points.newest_text(record.payload) == CHUNK.embedded_text
    scope = {name: record.payload[name] for name in ("tenant", "corpus", "kind", "generation")}
    assert scope == {"tenant": "acme", "corpus": "manuals", "kind": "chunk", "generation": 3}


def test_a_chunk_of_two_versions_is_read_as_in_either():
    """Behaviour 22."""
    old = points.chunk_point(DOCUMENT, "v1", CHUNK, UNIT)
    moved = replace(CHUNK, start=100, end=124, first_page=2)
    both = points.chunk_point(DOCUMENT, "v2", moved, UNIT, old.payload["versions"])
    assert points.chunk_from(through_json(both), "v1") == CHUNK
    assert points.chunk_from(through_json(both), "v2") == moved
    assert points.has_version(both.payload, "v1")
    assert points.has_version(both.payload, "v2")
    assert not points.has_version(both.payload, "v3")
    assert not points.has_version(both.payload, None)


def test_a_document_survives_its_point():
    pages = [page("one"), page("", 2), page("two", 3)]
    record = through_json(points.document_point(DOCUMENT, "v", pages, [CHUNK, CHUNK]))
    assert points.document_from(record.payload) == DOCUMENT
    assert record.payload["pages"] == {"text": 2, "blank": 1}
    assert (record.payload["chunks"], record.payload["tokens"]) == (2, 18)


def test_chunks_that_are_deleted_are_counted_out_if_they_are_current():
    document = through_json(points.document_point(DOCUMENT, "v2", [], [CHUNK, CHUNK]))
    old = through_json(points.chunk_point(DOCUMENT, "v1", CHUNK, UNIT))
    new = through_json(points.chunk_point(DOCUMENT, "v2", CHUNK, UNIT))
    payload = points.without_chunks(document, [old, new]).payload
    assert (payload["chunks"], payload["tokens"]) == (1, 9)
    assert document.payload["chunks"] == 2


@pytest.mark.parametrize("length", [0, 1, 499_999, 500_000, 500_001, 1_250_000])
def test_a_long_text_is_kept_in_slices(length):
    text = "".join(chr(97 + n % 26) for n in range(length))
    parts = points.text_points(DOCUMENT, "v", [page(text)])
    assert "".join(part.payload["text"] for part in parts) == text
    assert all(len(part.payload["text"]) <= points.TEXT_PART_CHARACTERS for part in parts)
    described = points.document_point(DOCUMENT, "v", [page(text)], []).payload["text_parts"]
    assert [part.id for part in parts] == points.text_point_ids(DOCUMENT.id, "v", described)


def test_the_version_names_the_content():
    """Behaviour 19."""
    version = points.version_of(DOCUMENT, [page("one")], [CHUNK])
    assert version.startswith("3-")
    assert points.version_of(DOCUMENT, [page("one")], [CHUNK]) == version
    others = {
        points.version_of(replace(DOCUMENT, generation=4), [page("one")], [CHUNK]),
        points.version_of(DOCUMENT, [page("two")], [CHUNK]),
        points.version_of(DOCUMENT, [page("one")], []),
        points.version_of(DOCUMENT, [page("one")], [replace(CHUNK, start=11)]),
        points.version_of(DOCUMENT, [page("one")], [replace(CHUNK, id=uuid4())]),
    }
    assert len(others | {version}) == 6


def test_the_points_of_corpora_differ():
    keys = [CorpusKey("a", "b"), CorpusKey("b", "a"), CorpusKey("ab", "c"), CorpusKey("a", "bc")]
    assert len({points.corpus_point_id(key) for key in keys}) == len(keys)
    corpus = points.Corpus("c__m__8__v1", "m", 8)
    assert points.corpus_from(through_json(points.corpus_point(keys[0], corpus))) == corpus


def test_sparse_weights_are_those_of_bm25():
    text = "The mirror, the mirror OBS-12/3b"
    vector = points.sparse_of(text)
    counts = Counter(terms(text))
    expected = [
        bm25.score({term: 1.0}, {term: count}, counts.total(), points.MEAN_TERMS)
        for term, count in counts.items()
    ]
    assert vector.values == pytest.approx(expected)
    assert set(points.sparse_query(text).indices) == set(vector.indices)
    assert set(points.sparse_query(text).values) == {1.0}
    assert all(0 <= index < 2**32 for index in vector.indices)


@pytest.mark.parametrize("text", ["", " ", "?!", "🚀"])
def test_a_text_without_terms_has_no_sparse_vector(text):
    assert points.sparse_of(text) is None
    assert points.sparse_query(text) is None


def test_terms_that_share_an_index_share_its_weight(monkeypatch):
    monkeypatch.setattr(points, "_index", lambda term: 5)
    one, two = points.sparse_of("mirror"), points.sparse_of("mirror dome")
    assert two.indices == [5]
    assert two.values[0] > one.values[0]
    assert points.sparse_query("mirror dome").indices == [5]
