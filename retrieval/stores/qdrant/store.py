"""The store in Qdrant. A corpus is a collection, shared by its tenants, behind an alias.

All tenants of a corpus thus have the same model. How a document's versions are kept apart is told
in `points`; accepted text and counts are kept, blocks and signals of pages are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ragplane.core.errors import StageError
from ragplane.core.schema import Chunk, Document, Page
from retrieval.stores.base import CorpusKey, CorpusStatus, Fence, PointFact, Scored
from retrieval.stores.checks import (
    best_first,
    check_dimensions,
    check_document,
    check_made_by,
    check_same_model,
    unit_query,
    unit_rows,
)
from retrieval.stores.qdrant import names, points, writing
from retrieval.stores.qdrant.engine import Engine, Record, Sparse, Where
from retrieval.stores.qdrant.points import Corpus
from retrieval.stores.qdrant.reading import accepted_text, current
from retrieval.stores.qdrant.reembedding import QdrantReembedding


class QdrantStore:
    """Implements `Store` over an engine, which `aclose` closes."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.reembedding = QdrantReembedding(engine)

    async def open_corpus(self, key: CorpusKey, *, fingerprint: str, dimensions: int) -> None:
        """Create the corpus, or check that it was made with this model (else ConfigError)."""
        check_dimensions(dimensions)
        corpus = await self._corpus(key) or await self._shared_corpus(key)
        if corpus is None:
            corpus = await self._create(key, fingerprint, dimensions)
        check_same_model(
            key.corpus,
            made_with=(corpus.fingerprint, corpus.dimensions),
            asked_for=(fingerprint, dimensions),
        )
        await self.engine.upsert(corpus.collection, [points.corpus_point(key, corpus)])

    async def fingerprint(self, key: CorpusKey) -> str | None:
        """Fingerprint the corpus was made with; None if there is no such corpus."""
        corpus = await self._corpus(key)
        return corpus.fingerprint if corpus else None

    async def documents(self, key: CorpusKey) -> dict[str, Document]:
        """Every document of the corpus by its source."""
        return {
            record.payload["source"]: points.document_from(record.payload)
            async for record in self._all(key, "document")
        }

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
        """Put the document in place of any earlier generation, all or nothing.

        `vectors` is float32 [len(chunks), dimensions]. Running it twice changes nothing. Raises
        StageError at `store` for what cannot be stored (see `checks.check_document`), and
        ConfigError for vectors of another `fingerprint` than the corpus has now.
        """
        check_document(document, pages, chunks)
        corpus = await self._corpus(CorpusKey(document.tenant, document.corpus))
        if corpus is None:
            cause = f"there is no corpus {document.corpus!r}"
            raise StageError("store", cause, document=document.source)
        check_made_by(document.corpus, corpus.fingerprint, fingerprint)
        units = unit_rows(document, vectors, (len(chunks), corpus.dimensions))
        await writing.replace_document(
            self.engine, corpus.collection, document, pages, chunks, units, fence
        )

    async def delete_document(
        self, key: CorpusKey, document_id: UUID, *, fence: Fence | None = None
    ) -> None:
        """Remove the document with its chunks and vectors, all or nothing."""
        if corpus := await self._corpus(key):
            if fence is not None:
                await fence.check()
            await writing.delete_document(self.engine, corpus.collection, key.tenant, document_id)

    async def points(self, key: CorpusKey) -> dict[UUID, PointFact]:
        """Every point of the corpus by its id, for verification; also those no reader sees."""
        return {
            record.id: points.fact_from(record)
            async for record in self._all(key, "chunk", points.FACT_FIELDS)
        }

    async def delete_points(self, key: CorpusKey, ids: Sequence[UUID]) -> None:
        """Remove the points with these ids that are in the corpus; their documents stay."""
        if corpus := await self._corpus(key):
            await writing.delete_chunks(self.engine, corpus.collection, key.tenant, ids)

    async def move_document(self, key: CorpusKey, document_id: UUID, source: str) -> None:
        """Give the document another source; its id, chunks and vectors stay."""
        if corpus := await self._corpus(key):
            await writing.move_document(
                self.engine, corpus.collection, key.tenant, document_id, source
            )

    async def dense(self, key: CorpusKey, vector: NDArray[np.float32], limit: int) -> list[Scored]:
        """The nearest chunks to the query `vector` [dimensions] by cosine, best first.

        Raises InputError for a vector of another length.
        """
        corpus = await self._corpus(key)
        if corpus is None:
            return []
        unit = unit_query(vector, corpus.dimensions)
        return await self._search(corpus.collection, key, unit.tolist(), limit)

    async def lexical(self, key: CorpusKey, query: str, limit: int) -> list[Scored]:
        """The best chunks by BM25 (Robertson and Zaragoza 2009), best first.

        The IDF is the tenant's own; the mean length is fixed, see `points.MEAN_TERMS`.
        """
        corpus = await self._corpus(key)
        weights = points.sparse_query(query)
        if corpus is None or weights is None:
            return []
        return await self._search(corpus.collection, key, weights, limit)

    async def chunks(
        self, key: CorpusKey, ids: Sequence[UUID]
    ) -> dict[UUID, tuple[Chunk, Document]]:
        """The chunks with these ids that are in the corpus, each with its document."""
        corpus = await self._corpus(key)
        if corpus is None:
            return {}
        collection = corpus.collection

        async def ask(_: int) -> list[Record]:
            found = await self.engine.retrieve(collection, ids)
            scope = ("chunk", key.tenant)
            return [r for r in found if (r.payload["kind"], r.payload["tenant"]) == scope]

        return {
            found.record.id: (
                points.chunk_from(found.record, found.document["version"]),
                points.document_from(found.document),
            )
            for found in await current(self.engine, collection, ask, len(ids))
        }

    async def accepted_text(self, key: CorpusKey, document_id: UUID) -> str | None:
        """The text that chunk offsets count in; None if there is no such document."""
        corpus = await self._corpus(key)
        if corpus is None:
            return None
        return await accepted_text(self.engine, corpus.collection, key.tenant, document_id)

    async def status(self, key: CorpusKey) -> CorpusStatus | None:
        """What the corpus holds; None if there is no such corpus."""
        corpus = await self._corpus(key)
        if corpus is None:
            return None
        routes: Counter[str] = Counter()
        totals: Counter[str] = Counter()
        async for record in self._all(key, "document", ("pages", "chunks", "tokens")):
            routes.update(record.payload["pages"])
            totals["documents"] += 1
            totals.update({name: record.payload[name] for name in ("chunks", "tokens")})
        return CorpusStatus(
            documents=totals["documents"],
            pages=dict(sorted(routes.items())),
            chunks=totals["chunks"],
            tokens=totals["tokens"],
            fingerprint=corpus.fingerprint,
            dimensions=corpus.dimensions,
        )

    async def aclose(self) -> None:
        """Close the engine."""
        await self.engine.aclose()

    async def _corpus(self, key: CorpusKey) -> Corpus | None:
        [*found] = await self.engine.retrieve(names.slug(key.corpus), [points.corpus_point_id(key)])
        return points.corpus_from(found[0]) if found else None

    async def _shared_corpus(self, key: CorpusKey) -> Corpus | None:
        """The corpus as another tenant has it."""
        collection = (await self.engine.aliases()).get(names.slug(key.corpus))
        if collection is None:
            return None
        where = Where({"kind": "corpus", "corpus": key.corpus})
        async for page in self.engine.scroll(collection, where):
            for record in page:
                return points.corpus_from(record)
        return None

    async def _create(self, key: CorpusKey, fingerprint: str, dimensions: int) -> Corpus:
        alias = names.slug(key.corpus)
        name = names.CollectionName(alias, names.slug(fingerprint), dimensions, version=1)
        await self.engine.create(str(name), dimensions)
        await self.engine.switch_alias(alias, str(name))
        return Corpus(str(name), fingerprint, dimensions)

    async def _search(
        self, collection: str, key: CorpusKey, query: list[float] | Sparse, limit: int
    ) -> list[Scored]:
        where = Where({"tenant": key.tenant})
        found = await current(
            self.engine,
            collection,
            lambda asked: self.engine.search(collection, query, where, asked),
            limit,
        )
        scores = ((item.record.id, item.record.score) for item in found)
        return [Scored(*item) for item in best_first(scores, limit)]

    async def _all(
        self, key: CorpusKey, kind: str, fields: Sequence[str] | None = None
    ) -> AsyncIterator[Record]:
        corpus = await self._corpus(key)
        if corpus is None:
            return
        where = Where({"tenant": key.tenant, "kind": kind})
        async for page in self.engine.scroll(corpus.collection, where, fields):
            for record in page:
                yield record
