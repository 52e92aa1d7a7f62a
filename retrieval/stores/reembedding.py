"""Another model for a corpus in PostgreSQL: vectors indexed as they are filled in, then a flip."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from ragplane.core.errors import StageError
from ragplane.core.schema import Chunk
from retrieval.stores import rows, writes
from retrieval.stores.base import CorpusKey, Embed, PointFact
from retrieval.stores.checks import check_change, check_dimensions, unit_rows
from retrieval.stores.connections import Connection, Connections, fetch_all, fetch_one
from retrieval.stores.rows import Row, scope
from retrieval.stores.sql import statement

# What a process that is killed may have embedded for nothing. Each batch is looked for anew.
_BATCH_CHUNKS = 1024
_LOOK_AGAIN_S = 0.1


class PostgresReembedding:
    """Implements `Reembedding`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def begin(self, key: CorpusKey, *, fingerprint: str, dimensions: int) -> None:
        """As `Reembedding.begin`."""
        check_dimensions(dimensions)
        async with self._alone(key, "begin a re-embedding") as (connection, corpus):
            check_change(
                key.corpus,
                made_with=corpus["fingerprint"] if corpus else None,
                second=corpus["second_fingerprint"] if corpus else None,
                fingerprint=fingerprint,
            )
            await writes.create_index(connection, dimensions)
            model = {"fingerprint": fingerprint, "dimensions": dimensions}
            await connection.execute(statement("begin_reembedding"), scope(key) | model)

    async def fill(self, key: CorpusKey, fingerprint: str, embed: Embed) -> int:
        """As `Reembedding.fill`."""
        embedded = 0
        while chunks := await self._unembedded(key, fingerprint):
            written = await self._write(key, fingerprint, chunks, await embed(chunks))
            embedded += written
            if not written:  # a writer has them all in hand
                await asyncio.sleep(_LOOK_AGAIN_S)
        return embedded

    async def points(self, key: CorpusKey, fingerprint: str) -> dict[UUID, PointFact]:
        """As `Reembedding.points`."""
        async with self._connections.transaction("read new vectors") as connection:
            second = await _second(connection, key, fingerprint)
            found = (
                await fetch_all(connection, statement("second_points"), second) if second else []
            )
        return {row.pop("id"): PointFact(**row) for row in found}

    async def switch(self, key: CorpusKey, fingerprint: str) -> bool:
        """As `Reembedding.switch`: one row. Searches that began see the old vectors."""
        async with self._alone(key, "switch to new vectors") as (connection, corpus):
            second = await _second(connection, key, fingerprint)
            if corpus is None or second is None:
                return corpus is not None and corpus["fingerprint"] == fingerprint
            if await fetch_one(connection, statement("unembedded"), second | {"limit": 1}):
                return False
            await connection.execute(statement("switch"), second)
        return True

    async def drop_unused(self, key: CorpusKey) -> str | None:
        """As `Reembedding.drop_unused`."""
        async with self._alone(key, "drop vectors") as (connection, corpus):
            if corpus is None:
                return None
            dropped: str | None = corpus["second_fingerprint"]
            second = {"corpus_id": corpus["id"], "slot": 1 - corpus["slot"]}
            await connection.execute(statement("drop_second_vectors"), second)
        return dropped

    async def _unembedded(self, key: CorpusKey, fingerprint: str) -> list[Chunk]:
        async with self._connections.transaction("read chunks to embed") as connection:
            if not (second := await _second(connection, key, fingerprint)):
                return []
            batch = second | {"limit": _BATCH_CHUNKS}
            return [
                rows.chunk_from(row)
                for row in await fetch_all(connection, statement("unembedded"), batch)
            ]

    async def _write(
        self,
        key: CorpusKey,
        fingerprint: str,
        chunks: Sequence[Chunk],
        vectors: NDArray[np.float32],
    ) -> int:
        """How many of them had a place."""
        async with self._connections.transaction("write new vectors") as connection:
            # Not while the second set becomes the first, or another model's.
            await connection.execute(statement("lock_writes"), scope(key))
            if not (second := await _second(connection, key, fingerprint)):
                raise StageError("store", "the new vectors were dropped meanwhile")
            units = unit_rows(None, vectors, (len(chunks), second["dimensions"]))
            batch = {
                "ids": [chunk.id for chunk in chunks],
                "embeddings": [HalfVector(unit) for unit in units],
            }
            done = await connection.execute(statement("insert_second_vectors"), second | batch)
        return done.rowcount

    @asynccontextmanager
    async def _alone(
        self, key: CorpusKey, purpose: str
    ) -> AsyncIterator[tuple[Connection, Row | None]]:
        """A transaction that keeps the corpus's writers out, and the corpus's row."""
        async with self._connections.transaction(purpose) as connection:
            await connection.execute(statement("lock_model"), scope(key))
            yield connection, await fetch_one(connection, statement("corpus"), scope(key))


async def _second(connection: Connection, key: CorpusKey, fingerprint: str) -> Row | None:
    """The corpus's id, and the slot and dimensions of its second set, if that is of this model."""
    corpus = await fetch_one(connection, statement("corpus"), scope(key))
    if corpus is None or corpus["second_fingerprint"] != fingerprint:
        return None
    return {
        "corpus_id": corpus["id"],
        "slot": 1 - corpus["slot"],
        "dimensions": corpus["second_dimensions"],
    }
