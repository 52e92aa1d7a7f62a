"""The store in PostgreSQL with pgvector: the embedded one, or any by RAGPLANE_DATABASE_URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from ragplane.core.config import Settings
from ragplane.core.errors import StageError
from ragplane.core.schema import Chunk, Document, Page, join_pages
from retrieval.stores import bm25, rows, writes
from retrieval.stores.base import CorpusKey, CorpusStatus, Fence, PointFact, Scored
from retrieval.stores.checks import (
    check_dimensions,
    check_document,
    check_made_by,
    check_same_model,
    unit_query,
    unit_rows,
)
from retrieval.stores.connections import Connection, fetch_all, fetch_one
from retrieval.stores.database import Database
from retrieval.stores.plan import (
    COUNTED_POSTINGS,
    RESCORED_CHUNKS,
    LexicalPlan,
    estimate,
    plan,
)
from retrieval.stores.reembedding import PostgresReembedding
from retrieval.stores.rows import Row, scope
from retrieval.stores.sql import statement
from retrieval.stores.terms import terms

# Up to here every vector is measured: exact, and as fast as the index with a filter on top.
EXACT_CHUNKS = 5_000
_EF_SEARCH_LEAST = 100
_EF_SEARCH_MOST = 1_000
_MAX_SCAN_TUPLES = 100_000


class PostgresStore:
    """Implements `Store`. Made by `open`; `aclose` ends it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connections = database.connections
        self.reembedding = PostgresReembedding(database.connections)

    @classmethod
    async def open(cls, settings: Settings) -> PostgresStore:
        """The store in the database of these settings.

        Raises UnavailableError naming the host or folder, and ConfigError where it cannot be used.
        """
        return cls(await Database.open(settings))

    async def open_corpus(self, key: CorpusKey, *, fingerprint: str, dimensions: int) -> None:
        """Create the corpus, or check that it was made with this model (else ConfigError)."""
        check_dimensions(dimensions)
        async with self._connections.transaction("open the corpus") as connection:
            corpus = await _corpus(connection, key)
            if corpus is None:
                corpus = await writes.create_corpus(connection, key, fingerprint, dimensions)
        check_same_model(
            key.corpus,
            made_with=(corpus["fingerprint"], corpus["dimensions"]),
            asked_for=(fingerprint, dimensions),
        )

    async def fingerprint(self, key: CorpusKey) -> str | None:
        """Fingerprint the corpus was made with; None if there is no such corpus."""
        async with self._connections.transaction("read the corpus") as connection:
            corpus = await _corpus(connection, key)
        return corpus["fingerprint"] if corpus else None

    async def documents(self, key: CorpusKey) -> dict[str, Document]:
        """Every document of the corpus by its source."""
        found = await self._all("documents", scope(key))
        return {row["source"]: rows.document_from(key, row) for row in found}

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
        ConfigError for vectors of another `fingerprint` than the corpus has now. The `fence` holds
        to the commit.
        """
        check_document(document, pages, chunks)
        counts = await asyncio.to_thread(rows.term_counts, chunks)
        key = CorpusKey(document.tenant, document.corpus)
        async with self._writing(key, "store a document") as connection, writes.refusals(document):
            corpus = await _corpus(connection, key)
            if corpus is None:
                cause = f"there is no corpus {document.corpus!r}"
                raise StageError("store", cause, document=document.source)
            check_made_by(key.corpus, corpus["fingerprint"], fingerprint)
            units = unit_rows(document, vectors, (len(chunks), corpus["dimensions"]))
            gone = await writes.clear_document(connection, corpus["id"], document)
            written = await writes.write_parts(
                connection, corpus, document.id, pages, chunks, units, counts
            )
            if fence is not None:
                await fence.check_in(connection)
            await writes.count(connection, corpus["id"], written=written, gone=gone)

    async def delete_document(
        self, key: CorpusKey, document_id: UUID, *, fence: Fence | None = None
    ) -> None:
        """Remove the document with its pages, chunks and vectors, all or nothing."""
        async with self._writing(key, "delete a document") as connection:
            found = await fetch_one(
                connection, statement("lock_document"), scope(key) | {"id": document_id}
            )
            if found:
                gone = await writes.delete_document(connection, document_id)
                if fence is not None:
                    await fence.check_in(connection)
                await writes.count(connection, found["corpus_id"], gone=gone)

    async def move_document(self, key: CorpusKey, document_id: UUID, source: str) -> None:
        """Give the document another source; its id, pages, chunks and vectors stay."""
        async with self._writing(key, "move a document") as connection:
            if corpus := await _corpus(connection, key):
                gone = await writes.move_document(
                    connection, key, corpus["id"], document_id, source
                )
                await writes.count(connection, corpus["id"], gone=gone)

    async def points(self, key: CorpusKey) -> dict[UUID, PointFact]:
        """Every point of the corpus by its id, for verification."""
        return {row.pop("id"): PointFact(**row) for row in await self._all("points", scope(key))}

    async def delete_points(self, key: CorpusKey, ids: Sequence[UUID]) -> None:
        """Remove the points with these ids that are in the corpus; their documents stay."""
        async with self._writing(key, "delete points") as connection:
            chosen = {"ids": list(ids)}
            owners = await fetch_all(connection, statement("lock_owners"), scope(key) | chosen)
            if owners:
                corpus_id = owners[0]["corpus_id"]
                gone = await writes.delete_points(connection, corpus_id, ids)
                await writes.count(connection, corpus_id, gone=gone)

    async def dense(self, key: CorpusKey, vector: NDArray[np.float32], limit: int) -> list[Scored]:
        """The nearest chunks to the query `vector` [dimensions] by cosine, best first.

        Exact up to EXACT_CHUNKS in the corpus. Raises InputError for a vector of another length.
        """
        async with self._snapshot("search by vector") as connection:
            corpus = await _corpus(connection, key)
            if corpus is None:
                return []
            query = {
                "corpus_id": corpus["id"],
                "slot": corpus["slot"],
                "vector": HalfVector(unit_query(vector, corpus["dimensions"])),
                "limit": limit,
            }
            found: list[Row] = []
            if corpus["chunk_count"] > EXACT_CHUNKS:
                found = await _index_scan(connection, corpus["dimensions"], query)
            if len(found) < min(limit, corpus["chunk_count"]):
                found = await fetch_all(connection, statement("dense_exact"), query)
        return _scored(found)

    async def lexical(self, key: CorpusKey, query: str, limit: int) -> list[Scored]:
        """The best chunks by BM25 (Robertson and Zaragoza 2009), best first.

        Exact while the query's terms occur in fewer chunks than the caps of `plan`.
        """
        async with self._snapshot("search by words") as connection:
            corpus = await _corpus(connection, key)
            if corpus is None:
                return []
            asked = {
                "corpus_id": corpus["id"],
                "terms": sorted(set(terms(query))),
                "cap": COUNTED_POSTINGS,
            }
            seen = await fetch_all(connection, statement("term_counts"), asked)
            if not seen:
                return []
            parameters = _lexical_parameters(_plan(seen, corpus["chunk_count"]), corpus, limit)
            return _scored(await fetch_all(connection, statement("lexical"), parameters))

    async def chunks(
        self, key: CorpusKey, ids: Sequence[UUID]
    ) -> dict[UUID, tuple[Chunk, Document]]:
        """The chunks with these ids that are in the corpus, each with its document."""
        found = await self._all("chunks", scope(key) | {"ids": list(ids)})
        return {
            row["id"]: (rows.chunk_from(row), rows.chunk_document_from(key, row)) for row in found
        }

    async def accepted_text(self, key: CorpusKey, document_id: UUID) -> str | None:
        """The text that chunk offsets count in; None if there is no such document."""
        found = await self._all("page_texts", scope(key) | {"id": document_id})
        return join_pages(row["text"] or "" for row in found) if found else None

    async def status(self, key: CorpusKey) -> CorpusStatus | None:
        """What the corpus holds; None if there is no such corpus."""
        found = await self._all("status", scope(key))
        return CorpusStatus(**found[0]) if found else None

    async def aclose(self) -> None:
        """Close connections; an embedded database stops with its last user."""
        await self._database.aclose()

    @asynccontextmanager
    async def _writing(self, key: CorpusKey, purpose: str) -> AsyncIterator[Connection]:
        """A transaction beside other writers, but not while the corpus changes its model."""
        async with self._connections.transaction(purpose) as connection:
            await connection.execute(statement("lock_writes"), scope(key))
            yield connection

    @asynccontextmanager
    async def _snapshot(self, purpose: str) -> AsyncIterator[Connection]:
        """A transaction whose statements all see the database as it was at the first of them."""
        async with self._connections.transaction(purpose) as connection:
            await connection.execute(statement("snapshot"))
            yield connection

    async def _all(self, name: str, parameters: Mapping[str, Any]) -> list[Row]:
        async with self._connections.transaction(f"read {name}") as connection:
            return await fetch_all(connection, statement(name), parameters)


def _scored(found: Iterable[Row]) -> list[Scored]:
    return [Scored(row["id"], row["score"]) for row in found]


async def _corpus(connection: Connection, key: CorpusKey) -> Row | None:
    return await fetch_one(connection, statement("corpus"), scope(key))


async def _index_scan(
    connection: Connection, dimensions: int, query: Mapping[str, Any]
) -> list[Row]:
    settings = {
        "ef_search": str(min(max(_EF_SEARCH_LEAST, 2 * query["limit"]), _EF_SEARCH_MOST)),
        "max_scan_tuples": str(_MAX_SCAN_TUPLES),
    }
    await connection.execute(statement("configure_index_scan"), settings)
    return await fetch_all(connection, statement("dense", dimensions=dimensions), query)


def _plan(seen: Iterable[Row], chunks: int) -> LexicalPlan:
    counts = [
        estimate(row["term"], row["containing"], row["last_chunk_id"], chunks) for row in seen
    ]
    return plan(counts, chunks)


def _lexical_parameters(lexical: LexicalPlan, corpus: Row, limit: int) -> dict[str, Any]:
    driving = lexical.driving.values()
    return {
        "corpus_id": corpus["id"],
        "driving_terms": list(lexical.driving),
        "driving_weights": [weight for weight, _ in driving],
        "driving_postings": [postings for _, postings in driving],
        "rest_terms": list(lexical.rest),
        "rest_weights": list(lexical.rest.values()),
        "mean_length": corpus["term_total"] / corpus["chunk_count"],
        "k1": bm25.K1,
        "b": bm25.B,
        "rescored": max(RESCORED_CHUNKS, 2 * limit),
        "limit": limit,
    }
