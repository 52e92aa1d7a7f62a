"""The one seam for the state of ingestion: documents, pages, leases, pending writes, runs.

Work is at least once: a worker claims a document in a short transaction, reads it outside of any,
and commits what came of it if no newer claim exists. Everything written is idempotent, so a
worker that dies leaves work that the next claim finishes.

    pending -> claimed -> parsed -> done | partial | failed
    any -> pending (the file or the parser's configuration changed)
    any -> tombstone -> no row

A generation of a document is written to the store, older ones deleted there, then
`finish_document` flips the ledger to it. A ledger that fails raises UnavailableError or
ConfigError; a commit under a lost lease raises LeaseLostError.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ingest.ledger.decisions import MAX_ATTEMPTS
from ingest.ledger.records import (
    Claim,
    DocumentRow,
    LedgerError,
    LedgerStatus,
    Move,
    PageRow,
    Run,
    RunStatus,
    SourceListing,
    SyncReport,
)
from ingest.parsed import ParseResult, RawPage
from ragplane.core.errors import StageError
from retrieval.stores.base import CorpusKey, Fence, PointFact


class Ledger(Protocol):
    """Which documents there are, who works on them, and what came of it."""

    async def unhashed(self, key: CorpusKey, listing: SourceListing) -> set[str]:
        """Sources whose content must be hashed before `sync`, as `decisions.unhashed` says."""
        ...

    async def sync(self, key: CorpusKey, listing: SourceListing, parser_hash: str) -> SyncReport:
        """Record what is new, changed, moved or gone, and what another configuration made stale.

        Work in progress on a document that changed loses its lease. A document that moved keeps
        its id, chunks and vectors; the outbox tells the store its new source.
        """
        ...

    async def tombstone(self, key: CorpusKey, sources: Collection[str]) -> int:
        """Have these documents deleted; how many there were."""
        ...

    async def retry(self, key: CorpusKey) -> int:
        """Put every failed or partial document back in the queue; how many there were."""
        ...

    async def requeue(self, key: CorpusKey, ids: Collection[UUID]) -> int:
        """Put these documents back in the queue, unless they wait already; how many there were."""
        ...

    async def holders(self, key: CorpusKey) -> set[str]:
        """The workers that hold documents."""
        ...

    async def expire(self, key: CorpusKey, holders: Collection[str]) -> int:
        """End the leases of these workers, which are known to be dead; how many there were."""
        ...

    async def claim(
        self,
        key: CorpusKey,
        worker: str,
        *,
        lease_s: float,
        limit: int,
        max_attempts: int = MAX_ATTEMPTS,
        parser_hash: str | None = None,
        tombstones_only: bool = False,
    ) -> list[Claim]:
        """Take up to `limit` documents that nobody holds, the longest waiting first.

        One whose workers died `max_attempts` times becomes failed at stage `parse` instead.
        `parser_hash` is the configuration that it will be read with; None: the one that queued it.
        New documents wait for writes in the outbox: one may move what stands at their place.
        """
        ...

    async def renew(self, claim: Claim, lease_s: float) -> None:
        """Hold the document for `lease_s` from now on."""
        ...

    def fence(self, claim: Claim) -> Fence:
        """What a store checks so that a lost claim writes nothing."""
        ...

    async def release(self, claim: Claim) -> None:
        """Give the document back as it is; the attempt does not count."""
        ...

    async def finished_pages(self, claim: Claim, sha256: str) -> dict[int, RawPage]:
        """Pages of this very content that were read under the claim's configuration, by number.

        Pages that failed are left out.
        """
        ...

    async def finish_pages(self, claim: Claim, sha256: str, pages: Sequence[RawPage]) -> None:
        """Keep pages of the content with that hash, so that no other claim reads them again."""
        ...

    async def finish_parsing(self, claim: Claim, result: ParseResult) -> None:
        """The document is parsed, and waits for its vectors.

        Vision tokens are counted here for pages that no checkpoint has, else in `finish_pages`.
        """
        ...

    async def vision_tokens(self, tenant: str) -> int:
        """What pages of the tenant's documents have cost since the UTC day began.

        Each reading counts, also of a page that was read before, or of a document that is gone.
        """
        ...

    async def finish_document(self, claim: Claim, result: ParseResult) -> None:
        """The claim's generation is in the store: flip to it, and end the claim.

        The document is `partial` if a page of it failed.
        """
        ...

    async def finish_deletion(self, claim: Claim) -> None:
        """The store holds nothing of the tombstone any more: drop its row.

        One that was listed again meanwhile is put back in the queue instead.
        """
        ...

    async def fail(self, claim: Claim, error: StageError) -> None:
        """The document failed, until `retry`, or until its file changes."""
        ...

    async def corpora(self, tenant: str) -> list[str]:
        """The tenant's corpora that have documents or had runs, by name."""
        ...

    async def documents(self, key: CorpusKey) -> dict[str, DocumentRow]:
        """Every document by its source."""
        ...

    async def manifest(self, key: CorpusKey) -> dict[UUID, PointFact]:
        """Every point that the store should hold, by its id."""
        ...

    async def waiting(self) -> dict[CorpusKey, int]:
        """How many documents could be claimed now, in each corpus that has any."""
        ...

    async def status(self, key: CorpusKey) -> LedgerStatus:
        """Counts, and the last ten errors."""
        ...

    async def errors(self, key: CorpusKey, limit: int) -> list[LedgerError]:
        """The last errors of documents and pages, newest first."""
        ...

    def triage_rows(self, key: CorpusKey) -> AsyncIterator[PageRow]:
        """Every page, document by document, without holding a transaction between them."""
        ...

    async def start_run(self, key: CorpusKey) -> UUID:
        """Note that a run begins."""
        ...

    async def end_run(
        self, run_id: UUID, status: RunStatus, totals: Mapping[str, Mapping[str, int]]
    ) -> None:
        """Note how a run ended, with counts such as {"documents": {"done": 3}}."""
        ...

    async def runs(self, key: CorpusKey, limit: int) -> list[Run]:
        """The last runs, newest first."""
        ...


class Outbox(Protocol):
    """Moves that the store has yet to take, in their order.

    One relay at a time holds those of a corpus: a move must reach the store before another
    document is written at the place it left.
    """

    async def take(self, key: CorpusKey, worker: str, *, lease_s: float, limit: int) -> list[Move]:
        """The oldest moves; none while another worker holds any of the corpus."""
        ...

    async def acknowledge(self, key: CorpusKey, ids: Sequence[int]) -> None:
        """The store has taken these: remove them."""
        ...


class VectorCache(Protocol):
    """Vectors by (model fingerprint, sha256 of the embedded text), float32 [dimensions]."""

    async def get(
        self, fingerprint: str, sha256s: Collection[str]
    ) -> dict[str, NDArray[np.float32]]:
        """Those of these texts that are known, exactly as they were put."""
        ...

    async def put(self, fingerprint: str, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep these vectors; what is known stays as it is."""
        ...

    async def prune(self, keep: int) -> int:
        """Drop the oldest beyond the newest `keep`; how many went."""
        ...
