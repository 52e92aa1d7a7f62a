"""Token vectors of texts that were reranked lately: the same candidates come back."""

from __future__ import annotations

import threading
from collections import OrderedDict

from serve.backends.base import TokenIds
from serve.encoder import Vectors


class TokenCache:
    """Least recently used goes first. Thread-safe, bounded by bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[TokenIds, Vectors] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, ids: TokenIds) -> Vectors | None:
        """The token vectors of `ids`, or None."""
        with self._lock:
            if ids in self._entries:
                self._entries.move_to_end(ids)
            return self._entries.get(ids)

    def put(self, ids: TokenIds, tokens: Vectors) -> None:
        """Keep `tokens`, and drop the oldest until all fit."""
        with self._lock:
            self._bytes += tokens.nbytes - getattr(self._entries.get(ids), "nbytes", 0)
            self._entries[ids] = tokens
            while self._bytes > self._max_bytes:
                _, dropped = self._entries.popitem(last=False)
                self._bytes -= dropped.nbytes
