"""What a run or a worker needs, opened by whoever owns it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import psutil

from ingest.ledger.base import Ledger, Outbox, VectorCache
from ingest.options import ParserSpec
from pipelines.ingestion.documents import Terms
from pipelines.ingestion.embedding import Embedder
from pipelines.ingestion.patience import patiently
from retrieval.stores.base import CorpusKey, Store
from serve.encoder import Encoder

OpenEncoder = Callable[[], Awaitable[Encoder]]


@dataclass(frozen=True, slots=True)
class Parts:
    """`open_encoder` is asked when there is something to embed: an unchanged corpus needs none."""

    store: Store
    ledger: Ledger
    outbox: Outbox
    cache: VectorCache
    open_encoder: OpenEncoder
    parser: ParserSpec
    terms: Terms = field(default_factory=Terms)


class Embedders:
    """One embedder for all corpora; each corpus is opened in the store when it is first written."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._turn = asyncio.Lock()
        self._embedder: Embedder | None = None
        self._opened: set[CorpusKey] = set()

    async def of(self, key: CorpusKey) -> Embedder:
        """Raises ConfigError for a corpus of another model, PartDownError where a part is down."""
        parts, patience_s = self._parts, self._parts.terms.patience_s
        async with self._turn:
            if self._embedder is None:
                encoder = await parts.open_encoder()
                self._embedder = await Embedder.open(encoder, parts.cache, patience_s)
            embedder = self._embedder
            if key not in self._opened:
                await patiently(
                    lambda: parts.store.open_corpus(
                        key, fingerprint=embedder.fingerprint, dimensions=embedder.dimensions
                    ),
                    "store",
                    patience_s,
                )
                self._opened.add(key)
        return embedder


def worker_name() -> str:
    """What leases of this process are held under: host, process id, and when it started."""
    return _name(psutil.Process())


def is_dead(worker: str) -> bool:
    """Whether a worker of this machine is gone; of another machine's nobody here can tell."""
    host, _, rest = worker.rpartition("/")
    pid = rest.partition("-")[0]
    if host != socket.gethostname() or not pid.isdecimal():
        return False
    try:
        return _name(psutil.Process(int(pid))) != worker
    except psutil.NoSuchProcess:
        return True


def _name(process: psutil.Process) -> str:
    return f"{socket.gethostname()}/{process.pid}-{process.create_time():.0f}"
