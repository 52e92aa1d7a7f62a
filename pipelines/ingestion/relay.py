"""From the outbox to the store: moves that the ledger noted in a transaction of its own."""

from __future__ import annotations

from ingest.ledger.base import Outbox
from retrieval.stores.base import CorpusKey, Store

_LIMIT = 100
_LEASE_S = 60.0


async def relay(outbox: Outbox, store: Store, key: CorpusKey, worker: str) -> int:
    """Apply the corpus's pending moves in their order; how many there were.

    Each may be applied twice: a relay that dies acknowledges nothing.
    """
    applied = 0
    while moves := await outbox.take(key, worker, lease_s=_LEASE_S, limit=_LIMIT):
        for move in moves:
            await store.move_document(key, move.document_id, move.source)
        await outbox.acknowledge(key, [move.id for move in moves])
        applied += len(moves)
    return applied
