"""Checking a corpus against its ledger, mending it, and deleting from it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ingest.ledger.records import Claim
from ingest.parsed import ParseResult
from pipelines.ingestion.documents import Documents
from pipelines.ingestion.parts import (
    MOST_DEATHS,
    Embedders,
    Holdings,
    Parts,
    is_dead,
    worker_name,
)
from pipelines.ingestion.patience import PartDownError
from pipelines.ingestion.pool import Pool
from pipelines.ingestion.relay import relay
from ragplane.core.errors import InputError, StageError
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


async def require_corpus(holdings: Holdings, key: CorpusKey) -> None:
    """Raise InputError where neither the store nor the ledger knows the corpus."""
    if await holdings.store.fingerprint(key) or key.corpus in await holdings.ledger.corpora(
        key.tenant
    ):
        return
    raise InputError(f"corpus {key.corpus!r} does not exist for tenant {key.tenant!r}")


async def verify_corpus(holdings: Holdings, key: CorpusKey) -> VerifyReport:
    """Compare the store with the ledger's manifest."""
    return VerifyReport(
        verify(await holdings.ledger.manifest(key), await holdings.store.points(key))
    )


async def repair_corpus(parts: Parts, key: CorpusKey, workers: int) -> VerifyReport:
    """Make the store what the manifest says; the report is that of the state afterwards.

    Documents of wrong or missing points are written anew from their files: pages and vectors that
    are known are neither read nor embedded again. Documents that waited already are written too.
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
    holdings: Holdings, key: CorpusKey, sources: Collection[str] | None
) -> tuple[int, Sequence[StageError]]:
    """Remove these documents (None: all): a tombstone first, then the points, then the row.

    How many went, and why others did not. Documents that wait to be read are left to wait. Raises
    InputError for an unknown corpus or document.
    """
    await require_corpus(holdings, key)
    known = set(await holdings.ledger.documents(key))
    wanted = known if sources is None else set(sources)
    if unknown := wanted - known:
        raise InputError(f"not in corpus {key.corpus!r}: {', '.join(sorted(unknown))}")
    await holdings.ledger.tombstone(key, wanted)
    await _prepare(holdings, key)
    documents = Documents(holdings.ledger, holdings.store, holdings.terms)
    gone, errors, kept = 0, list[StageError](), list[Claim]()
    try:
        while claim := await _claim(holdings, key, tombstones_only=True):
            try:
                async with documents.held(claim):
                    await documents.delete(claim)
                gone += 1
            except PartDownError:  # the others would wait for it as long
                kept.append(claim)
                raise
            except StageError as error:
                errors.append(_named(claim, error))
                kept.append(claim)
    finally:
        for claim in kept:
            await documents.release(claim)
    left = (await holdings.ledger.status(key)).documents.get("tombstone", 0) - len(errors)
    if left > 0:
        errors.append(StageError("store", f"{left} documents go when their worker is done"))
    return gone, errors


async def _work_off(parts: Parts, key: CorpusKey, workers: int) -> _Counted:
    documents = Documents(parts.ledger, parts.store, parts.terms)
    counted = _Counted()
    pool = Pool(documents, Embedders(parts).of, parts.parser, workers, counted)
    await _prepare(parts, key)
    parser_hash = parts.parser.options.fingerprint()
    await pool.run(partial(_claim, parts, key, parser_hash=parser_hash))
    return counted


async def _claim(
    holdings: Holdings,
    key: CorpusKey,
    *,
    parser_hash: str | None = None,
    tombstones_only: bool = False,
) -> Claim | None:
    claims = await holdings.ledger.claim(
        key,
        worker_name(),
        lease_s=holdings.terms.lease_s,
        limit=1,
        max_attempts=MOST_DEATHS,
        parser_hash=parser_hash,
        tombstones_only=tombstones_only,
    )
    return claims[0] if claims else None


async def _prepare(holdings: Holdings, key: CorpusKey) -> None:
    """Free what dead workers hold, and let the store take what waits for it."""
    dead = {worker for worker in await holdings.ledger.holders(key) if is_dead(worker)}
    await holdings.ledger.expire(key, dead)
    await relay(holdings.outbox, holdings.store, key, worker_name())


def _named(claim: Claim, error: StageError) -> StageError:
    return StageError(error.stage, error.cause, document=claim.source, page=error.page)


class _Counted:
    """Counts what was written, and keeps errors."""

    def __init__(self) -> None:
        self.written = 0
        self.errors: list[StageError] = []

    def read(self, claim: Claim, result: ParseResult) -> None:
        """See Outcomes."""
        self.written += 1

    def deleted(self, claim: Claim) -> None:
        """See Outcomes."""

    def failed(self, claim: Claim, error: StageError) -> None:
        """See Outcomes."""
        self.errors.append(_named(claim, error))

    def lost(self, claim: Claim) -> None:
        """See Outcomes."""

    def stop(self, error: StageError) -> None:
        """See Outcomes."""
        self.errors.append(error)
