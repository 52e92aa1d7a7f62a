"""Checking a corpus against its ledger, mending it, and deleting from it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ingest.ledger.records import Claim
from ingest.parsed import ParseResult
from pipelines.ingestion.documents import Documents
from pipelines.ingestion.parts import Embedders, Parts, worker_name
from pipelines.ingestion.pool import Pool
from pipelines.ingestion.relay import relay
from ragplane.core.errors import StageError
from retrieval.stores.base import CorpusKey
from retrieval.stores.verify import Verification, repair, verify


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found, and what was done about it: documents written anew, points removed."""

    found: Verification
    rewritten: int = 0
    removed: int = 0
    errors: tuple[StageError, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the store is as the ledger says, now."""
        return self.found.exact

    def as_json(self) -> dict[str, Any]:
        """For machines: the ids of the points, by what is wrong with them."""
        kinds = ("missing", "orphan", "stale", "duplicate")
        points = {kind: [str(id_) for id_ in getattr(self.found, kind)] for kind in kinds}
        return {
            "exact": self.exact,
            **points,
            "rewritten": self.rewritten,
            "removed": self.removed,
            "errors": [str(error) for error in self.errors],
        }


async def verify_corpus(parts: Parts, key: CorpusKey) -> VerifyReport:
    """Compare the store with the ledger's manifest."""
    return VerifyReport(verify(await parts.ledger.manifest(key), await parts.store.points(key)))


async def repair_corpus(parts: Parts, key: CorpusKey, workers: int) -> VerifyReport:
    """Make the store what the manifest says; the report is that of the state afterwards.

    Documents of wrong or missing points are written anew from their files: pages and vectors that
    are known are neither read nor embedded again.
    """
    manifest, stored = await parts.ledger.manifest(key), await parts.store.points(key)
    plan = repair(manifest, stored)
    await parts.store.delete_points(key, plan.delete_points)
    for document_id in plan.delete_documents:
        await parts.store.delete_document(key, document_id)
    await parts.ledger.requeue(key, plan.rewrite)
    counted = await _work_off(parts, key, workers)
    removed = len(stored.keys() - (await parts.store.points(key)).keys())
    after = await verify_corpus(parts, key)
    return VerifyReport(after.found, counted.written, removed, tuple(counted.errors))


async def delete_documents(
    parts: Parts, key: CorpusKey, sources: Collection[str]
) -> tuple[int, Sequence[StageError]]:
    """Remove these documents: a tombstone first, then the points, then the row."""
    await parts.ledger.tombstone(key, sources)
    counted = await _work_off(parts, key, workers=1)
    return counted.gone, counted.errors


async def _work_off(parts: Parts, key: CorpusKey, workers: int) -> _Counted:
    documents = Documents(parts.ledger, parts.store, parts.terms)
    counted = _Counted()
    pool = Pool(documents, Embedders(parts).of, parts.parser, workers, counted)

    async def claim() -> Claim | None:
        lease_s = parts.terms.lease_s
        claims = await parts.ledger.claim(key, worker_name(), lease_s=lease_s, limit=1)
        return claims[0] if claims else None

    await relay(parts.outbox, parts.store, key, worker_name())
    await pool.run(claim)
    return counted


class _Counted:
    """Counts outcomes."""

    def __init__(self) -> None:
        self.written = 0
        self.gone = 0
        self.errors: list[StageError] = []

    def read(self, claim: Claim, result: ParseResult) -> None:
        """See Outcomes."""
        self.written += 1

    def deleted(self, claim: Claim) -> None:
        """See Outcomes."""
        self.gone += 1

    def failed(self, claim: Claim, error: StageError) -> None:
        """See Outcomes."""
        self.errors.append(error)

    def lost(self, claim: Claim) -> None:
        """See Outcomes."""

    def stop(self, error: StageError) -> None:
        """See Outcomes."""
        self.errors.append(error)
