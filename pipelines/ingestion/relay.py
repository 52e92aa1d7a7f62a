"""From the outbox to the store: writes that the ledger promised in a transaction of its own."""

from __future__ import annotations

from ingest.ledger.base import Outbox
from ingest.ledger.records import VectorWrite
from retrieval.stores.base import CorpusKey, Store

_LIMIT = 100
_LEASE_S = 60.0


async def relay(outbox: Outbox, store: Store, key: CorpusKey, worker: str) -> int:
    """Apply the corpus's pending writes in their order; how many there were.

    Each may be applied twice: a relay that dies acknowledges nothing.
    """
    applied = 0
    while writes := await outbox.take(key, worker, lease_s=_LEASE_S, limit=_LIMIT):
        for write in writes:
            await _apply(store, key, write)
        await outbox.acknowledge(key, [write.id for write in writes])
        applied += len(writes)
    return applied


async def _apply(store: Store, key: CorpusKey, write: VectorWrite) -> None:
    if write.kind == "move":
        await store.move_document(key, write.document_id, write.payload.decode())
    else:
        raise ValueError(f"nobody writes {write.kind}")
