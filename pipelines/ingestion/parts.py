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
from pipelines.ingestion.patience import PartDownError, patiently
from ragplane.core.errors import StageError
from retrieval.stores.base import CorpusKey, Store
from serve.encoder import Encoder

# Deaths of workers that a document survives: it is rarely to blame, since parsers die apart.
MOST_DEATHS = 20
# The system counts from when it started, and its clock is set meanwhile.
_CLOCK_SLACK_S = 3.0

OpenEncoder = Callable[[], Awaitable[Encoder]]


@dataclass(frozen=True, slots=True)
class Holdings:
    """What corpora are kept in: enough to look at them and to delete from them."""

    store: Store
    ledger: Ledger
    outbox: Outbox
    terms: Terms = field(default_factory=Terms, kw_only=True)


@dataclass(frozen=True, slots=True)
class Parts(Holdings):
    """`open_encoder` is asked when there is something to embed: an unchanged corpus needs none."""

    cache: VectorCache
    open_encoder: OpenEncoder
    parser: ParserSpec


class Embedders:
    """One embedder for all corpora; each corpus is opened in the store when it is first written."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._turn = asyncio.Lock()
        self._embedder: Embedder | None = None
        self._opening: dict[CorpusKey, asyncio.Task[Embedder]] = {}

    async def of(self, key: CorpusKey) -> Embedder:
        """The same for all who ask, its failure too: only one of them waits for a part.

        Raises ConfigError for a corpus of another model, PartDownError where a part is down.
        """
        if key not in self._opening:
            self._opening[key] = asyncio.create_task(self._open(key))
        return await asyncio.shield(self._opening[key])

    async def _open(self, key: CorpusKey) -> Embedder:
        parts, patience_s = self._parts, self._parts.terms.patience_s
        async with self._turn:
            if self._embedder is None:
                encoder = await parts.open_encoder()
                self._embedder = await Embedder.open(encoder, parts.cache, patience_s)
            embedder = self._embedder
        try:
            await patiently(
                lambda: parts.store.open_corpus(
                    key, fingerprint=embedder.fingerprint, dimensions=embedder.dimensions
                ),
                "store",
                patience_s,
            )
        except PartDownError:
            raise
        except StageError as error:  # of the corpus, so of all its documents
            raise PartDownError("store", error.cause) from error
        return embedder


def worker_name() -> str:
    """What leases of this process are held under: host, process id, and when it started."""
    process = psutil.Process()
    return f"{socket.gethostname()}/{process.pid}-{process.create_time():.0f}"


def is_dead(worker: str) -> bool:
    """Whether a worker of this machine is gone; of another machine's nobody here can tell."""
    host, _, rest = worker.rpartition("/")
    pid, _, started_s = rest.partition("-")
    if host != socket.gethostname() or not (pid.isdecimal() and started_s.isdecimal()):
        return False
    try:
        process = psutil.Process(int(pid))
        same = abs(process.create_time() - int(started_s)) < _CLOCK_SLACK_S
        return not same or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
