"""Pending moves and cached vectors in memory, for unit tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ingest.ledger.memory import MemoryLedger
from ingest.ledger.records import Move
from retrieval.stores.base import CorpusKey


class MemoryOutbox:
    """Implements `Outbox` over the moves of a `MemoryLedger`."""

    def __init__(self, ledger: MemoryLedger, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._clock_s = clock_s
        self._leases: dict[int, tuple[str, float]] = {}

    async def take(self, key: CorpusKey, worker: str, *, lease_s: float, limit: int) -> list[Move]:
        """The oldest moves; none while another worker holds any of the corpus."""
        now_s = self._clock_s()
        waiting = [move for owner, move in self._ledger.moves.values() if owner == key]
        for move in waiting:
            owner, until_s = self._leases.get(move.id, (worker, 0.0))
            if owner != worker and until_s > now_s:
                return []
        taken = waiting[:limit]
        self._leases |= {move.id: (worker, now_s + lease_s) for move in taken}
        return taken

    async def acknowledge(self, key: CorpusKey, ids: Sequence[int]) -> None:
        """The store has taken these: remove them."""
        for id_ in ids:
            if id_ in self._ledger.moves and self._ledger.moves[id_][0] == key:
                del self._ledger.moves[id_]


class MemoryVectorCache:
    """Implements `VectorCache`."""

    def __init__(self) -> None:
        self._vectors: dict[tuple[str, str], NDArray[np.float32]] = {}

    async def get(
        self, fingerprint: str, sha256s: Collection[str]
    ) -> dict[str, NDArray[np.float32]]:
        """Those of these texts that are known, float32 [dimensions], exactly as they were put."""
        wanted = {sha256: self._vectors.get((fingerprint, sha256)) for sha256 in sha256s}
        return {sha256: vector for sha256, vector in wanted.items() if vector is not None}

    async def put(self, fingerprint: str, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep these vectors; what is known stays as it is."""
        for sha256, vector in sorted(vectors.items(), key=lambda pair: pair[0]):
            self._vectors.setdefault((fingerprint, sha256), vector.copy())

    async def prune(self, keep: int) -> int:
        """Drop the oldest beyond the newest `keep`; how many went."""
        gone = list(self._vectors)[: max(len(self._vectors) - keep, 0)]
        for name in gone:
            del self._vectors[name]
        return len(gone)
