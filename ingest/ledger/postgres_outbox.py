"""Pending moves and cached vectors in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ingest.ledger.records import Move
from ingest.ledger.rows import scope
from ingest.ledger.sql import statement
from retrieval.stores.base import CorpusKey
from retrieval.stores.connections import Connections, fetch_all

_FLOAT32 = np.dtype("<f4")  # the same bytes on every machine


class PostgresOutbox:
    """Implements `Outbox`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def take(self, key: CorpusKey, worker: str, *, lease_s: float, limit: int) -> list[Move]:
        """The oldest moves; none while another worker holds any of the corpus."""
        terms = scope(key) | {"worker": worker, "lease_s": lease_s, "limit": limit}
        async with self._connections.transaction("take pending moves") as connection:
            await connection.execute(statement("lock_moves"), scope(key))
            found = await fetch_all(connection, statement("take_moves"), terms)
        return [Move(**row) for row in found]

    async def acknowledge(self, key: CorpusKey, ids: Sequence[int]) -> None:
        """The store has taken these: remove them."""
        async with self._connections.transaction("acknowledge moves") as connection:
            await connection.execute(statement("drop_moves"), scope(key) | {"ids": list(ids)})


class PostgresVectorCache:
    """Implements `VectorCache`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def get(
        self, fingerprint: str, sha256s: Collection[str]
    ) -> dict[str, NDArray[np.float32]]:
        """Those of these texts that are known, float32 [dimensions], exactly as they were put."""
        wanted = {"fingerprint": fingerprint, "sha256s": list(sha256s)}
        async with self._connections.transaction("read cached vectors") as connection:
            found = await fetch_all(connection, statement("vectors"), wanted)
        return {
            row["sha256"]: np.frombuffer(row["vector"], _FLOAT32).astype(np.float32)
            for row in found
        }

    async def put(self, fingerprint: str, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep these vectors; what is known stays as it is."""
        # In one order for all, or two writers of the same texts could wait for each other.
        pairs = sorted(vectors.items(), key=lambda pair: pair[0])
        columns = {
            "fingerprint": fingerprint,
            "sha256s": [sha256 for sha256, _ in pairs],
            "vectors": [np.asarray(vector, _FLOAT32).tobytes() for _, vector in pairs],
        }
        async with self._connections.transaction("cache vectors") as connection:
            await connection.execute(statement("put_vectors"), columns)

    async def prune(self, keep: int) -> int:
        """Drop the oldest beyond the newest `keep`; how many went."""
        async with self._connections.transaction("prune cached vectors") as connection:
            return len(await fetch_all(connection, statement("prune_vectors"), {"keep": keep}))
