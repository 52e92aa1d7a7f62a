"""A whole store in memory: exact search, nothing kept. For unit tests and small experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ragplane.core.errors import StageError
from ragplane.core.schema import Chunk, Document, Page, join_pages
from retrieval.stores import bm25
from retrieval.stores.base import CorpusKey, CorpusStatus, Embed, Fence, PointFact, Scored
from retrieval.stores.checks import (
    best_first,
    check_change,
    check_dimensions,
    check_document,
    check_made_by,
    check_same_model,
    unit_query,
    unit_rows,
)
from retrieval.stores.terms import terms


@dataclass(frozen=True, slots=True)
class _Entry:
    """A chunk with its unit vector float32 [dimensions] and its term counts."""

    chunk: Chunk
    vector: NDArray[np.float32]
    counts: Counter[str]


@dataclass(frozen=True, slots=True)
class _Corpus:
    fingerprint: str
    dimensions: int
    documents: dict[UUID, Document] = field(default_factory=dict)
    pages: dict[UUID, tuple[Page, ...]] = field(default_factory=dict)
    entries: dict[UUID, _Entry] = field(default_factory=dict)

    def fact(self, chunk: Chunk) -> PointFact:
        generation = self.documents[chunk.document_id].generation
        return PointFact(chunk.document_id, generation, chunk.sha256)

    def remove(self, document_id: UUID) -> None:
        self.documents.pop(document_id, None)
        self.pages.pop(document_id, None)
        for entry in list(self.entries.values()):
            if entry.chunk.document_id == document_id:
                del self.entries[entry.chunk.id]


@dataclass(frozen=True, slots=True)
class _Second:
    """The second set: unit vectors of another model by chunk id."""

    fingerprint: str
    dimensions: int
    vectors: dict[UUID, NDArray[np.float32]] = field(default_factory=dict)


class MemoryReembedding:
    """Implements `Reembedding`."""

    def __init__(self, corpora: dict[CorpusKey, _Corpus]) -> None:
        self._corpora = corpora
        self._seconds: dict[CorpusKey, _Second] = {}

    async def begin(self, key: CorpusKey, *, fingerprint: str, dimensions: int) -> None:
        """As `Reembedding.begin`."""
        check_dimensions(dimensions)
        corpus, second = self._corpora.get(key), self._seconds.get(key)
        check_change(
            key.corpus,
            made_with=corpus.fingerprint if corpus else None,
            second=second.fingerprint if second else None,
            fingerprint=fingerprint,
        )
        self._seconds.setdefault(key, _Second(fingerprint, dimensions))

    async def fill(self, key: CorpusKey, fingerprint: str, embed: Embed) -> int:
        """As `Reembedding.fill`."""
        second = self._second(key, fingerprint)
        if second is None:
            return 0
        entries = self._corpora[key].entries
        chunks = [entry.chunk for id_, entry in entries.items() if id_ not in second.vectors]
        shape = (len(chunks), second.dimensions)
        units = unit_rows(None, await embed(chunks), shape) if chunks else ()
        second.vectors.update(zip((chunk.id for chunk in chunks), units, strict=True))
        return len(chunks)

    async def points(self, key: CorpusKey, fingerprint: str) -> dict[UUID, PointFact]:
        """As `Reembedding.points`."""
        corpus, second = self._corpora.get(key), self._second(key, fingerprint)
        if corpus is None or second is None:
            return {}
        there = ((id_, e.chunk) for id_, e in corpus.entries.items() if id_ in second.vectors)
        return {id_: corpus.fact(chunk) for id_, chunk in there}

    async def switch(self, key: CorpusKey, fingerprint: str) -> bool:
        """As `Reembedding.switch`."""
        corpus, second = self._corpora.get(key), self._second(key, fingerprint)
        if corpus is None or second is None:
            return corpus is not None and corpus.fingerprint == fingerprint
        if not corpus.entries.keys() <= second.vectors.keys():
            return False
        moved = {
            id_: replace(entry, vector=second.vectors[id_]) for id_, entry in corpus.entries.items()
        }
        old = {id_: entry.vector for id_, entry in corpus.entries.items()}
        self._seconds[key] = _Second(corpus.fingerprint, corpus.dimensions, old)
        self._corpora[key] = replace(
            corpus, fingerprint=fingerprint, dimensions=second.dimensions, entries=moved
        )
        return True

    async def drop_unused(self, key: CorpusKey) -> str | None:
        """As `Reembedding.drop_unused`."""
        second = self._seconds.pop(key, None)
        return second.fingerprint if second else None

    def _second(self, key: CorpusKey, fingerprint: str) -> _Second | None:
        second = self._seconds.get(key)
        return second if second and second.fingerprint == fingerprint else None


class MemoryStore:
    """Implements `Store` with exact cosine and exact BM25."""

    def __init__(self) -> None:
        self._corpora: dict[CorpusKey, _Corpus] = {}
        self.reembedding = MemoryReembedding(self._corpora)

    async def open_corpus(self, key: CorpusKey, *, fingerprint: str, dimensions: int) -> None:
        """Create the corpus, or check that it was made with this model (else ConfigError)."""
        check_dimensions(dimensions)
        corpus = self._corpora.setdefault(key, _Corpus(fingerprint, dimensions))
        check_same_model(
            key.corpus,
            made_with=(corpus.fingerprint, corpus.dimensions),
            asked_for=(fingerprint, dimensions),
        )

    async def fingerprint(self, key: CorpusKey) -> str | None:
        """Fingerprint the corpus was made with; None if there is no such corpus."""
        corpus = self._corpora.get(key)
        return corpus.fingerprint if corpus else None

    async def documents(self, key: CorpusKey) -> dict[str, Document]:
        """Every document of the corpus by its source."""
        corpus = self._corpora.get(key)
        return {doc.source: doc for doc in corpus.documents.values()} if corpus else {}

    async def replace_document(
        self,
        document: Document,
        pages: Sequence[Page],
        chunks: Sequence[Chunk],
        vectors: NDArray[np.float32],
        *,
        fingerprint: str | None = None,
        fence: Fence | None = None,
    ) -> None:
        """Put the document in place of any earlier generation, all or nothing."""
        check_document(document, pages, chunks)
        corpus = self._corpora.get(CorpusKey(document.tenant, document.corpus))
        if corpus is None:
            raise StageError(
                "store", f"there is no corpus {document.corpus!r}", document=document.source
            )
        check_made_by(document.corpus, corpus.fingerprint, fingerprint)
        units = unit_rows(document, vectors, (len(chunks), corpus.dimensions))
        self._check_ids(corpus, document, chunks)
        if fence is not None:
            await fence.check()
        for old in list(corpus.documents.values()):
            if old.id == document.id or old.source == document.source:
                corpus.remove(old.id)
        corpus.documents[document.id] = document
        corpus.pages[document.id] = tuple(sorted(pages, key=lambda page: page.number))
        for chunk, unit in zip(chunks, units, strict=True):
            counts = Counter(terms(chunk.embedded_text))
            corpus.entries[chunk.id] = _Entry(chunk, unit, counts)

    def _check_ids(self, corpus: _Corpus, document: Document, chunks: Sequence[Chunk]) -> None:
        replaced = {doc.id for doc in corpus.documents.values() if doc.source == document.source}
        for other in self._corpora.values():
            if other is not corpus and document.id in other.documents:
                raise StageError("store", "its id is taken", document=document.source)
            for chunk in chunks:
                taken = other.entries.get(chunk.id)
                if taken and taken.chunk.document_id not in replaced | {document.id}:
                    raise StageError("store", "a chunk's id is taken", document=document.source)

    async def delete_document(
        self, key: CorpusKey, document_id: UUID, *, fence: Fence | None = None
    ) -> None:
        """Remove the document with its pages, chunks and vectors, all or nothing."""
        if fence is not None:
            await fence.check()
        if corpus := self._corpora.get(key):
            corpus.remove(document_id)

    async def points(self, key: CorpusKey) -> dict[UUID, PointFact]:
        """Every point of the corpus by its id, for verification."""
        corpus = self._corpora.get(key)
        if corpus is None:
            return {}
        return {id_: corpus.fact(entry.chunk) for id_, entry in corpus.entries.items()}

    async def delete_points(self, key: CorpusKey, ids: Sequence[UUID]) -> None:
        """Remove the points with these ids that are in the corpus; their documents stay."""
        if corpus := self._corpora.get(key):
            for id_ in ids:
                corpus.entries.pop(id_, None)

    async def move_document(self, key: CorpusKey, document_id: UUID, source: str) -> None:
        """Give the document another source; its id, pages, chunks and vectors stay."""
        corpus = self._corpora.get(key)
        if corpus and (document := corpus.documents.get(document_id)):
            for other in list(corpus.documents.values()):
                if other.source == source and other.id != document_id:
                    corpus.remove(other.id)
            corpus.documents[document_id] = replace(document, source=source)

    async def dense(self, key: CorpusKey, vector: NDArray[np.float32], limit: int) -> list[Scored]:
        """The nearest chunks to the query `vector` [dimensions] by cosine, best first."""
        corpus = self._corpora.get(key)
        if corpus is None:
            return []
        query = unit_query(vector, corpus.dimensions)
        scores = ((id_, float(entry.vector @ query)) for id_, entry in corpus.entries.items())
        return [Scored(*item) for item in best_first(scores, limit)]

    async def lexical(self, key: CorpusKey, query: str, limit: int) -> list[Scored]:
        """The best chunks by BM25 (Robertson and Zaragoza 2009), best first."""
        corpus = self._corpora.get(key)
        if corpus is None or not corpus.entries:
            return []
        counts = {id_: entry.counts for id_, entry in corpus.entries.items()}
        mean_length = sum(chunk.total() for chunk in counts.values()) / len(counts)
        weights = {
            term: bm25.idf(len(counts), sum(term in chunk for chunk in counts.values()))
            for term in set(terms(query))
        }
        scores = (
            (id_, bm25.score(weights, chunk, chunk.total(), mean_length))
            for id_, chunk in counts.items()
        )
        return [Scored(*item) for item in best_first(scores, limit) if item[1] > 0]

    async def chunks(
        self, key: CorpusKey, ids: Sequence[UUID]
    ) -> dict[UUID, tuple[Chunk, Document]]:
        """The chunks with these ids that are in the corpus, each with its document."""
        corpus = self._corpora.get(key)
        if corpus is None:
            return {}
        found = (corpus.entries[id_].chunk for id_ in ids if id_ in corpus.entries)
        return {chunk.id: (chunk, corpus.documents[chunk.document_id]) for chunk in found}

    async def accepted_text(self, key: CorpusKey, document_id: UUID) -> str | None:
        """The text that chunk offsets count in; None if there is no such document."""
        corpus = self._corpora.get(key)
        if corpus is None or document_id not in corpus.documents:
            return None
        return join_pages(page.text for page in corpus.pages[document_id])

    async def status(self, key: CorpusKey) -> CorpusStatus | None:
        """What the corpus holds; None if there is no such corpus."""
        corpus = self._corpora.get(key)
        if corpus is None:
            return None
        routes = Counter(page.route for pages in corpus.pages.values() for page in pages)
        return CorpusStatus(
            documents=len(corpus.documents),
            pages=dict(sorted(routes.items())),
            chunks=len(corpus.entries),
            tokens=sum(entry.chunk.tokens for entry in corpus.entries.values()),
            fingerprint=corpus.fingerprint,
            dimensions=corpus.dimensions,
        )

    async def aclose(self) -> None:
        """Forget everything."""
        self._corpora.clear()
