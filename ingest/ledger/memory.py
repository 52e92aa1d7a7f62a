"""The whole ledger in memory, for unit tests: the same decisions, nothing kept."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import count
from uuid import UUID, uuid4

from ingest.ledger.codec import decode_page, encode_page
from ingest.ledger.decisions import (
    MAX_ATTEMPTS,
    SyncPlan,
    fresh_ids,
    plan_sync,
    unhashed,
)
from ingest.ledger.fences import MemoryFence
from ingest.ledger.memory_state import (
    QUEUED,
    Entry,
    PageEntry,
    errors_of,
    new_row,
    status_of,
    triage_of,
)
from ingest.ledger.records import (
    Claim,
    DocumentRow,
    LeaseLostError,
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
from ragplane.core.schema import Page
from retrieval.stores.base import CorpusKey, PointFact


class MemoryLedger:
    """Implements `Ledger`. `clock_s` is the time that leases are measured by."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._entries: dict[UUID, Entry] = {}
        self._runs: dict[UUID, tuple[CorpusKey, Run]] = {}
        self._order = count(1)
        self._vision: Counter[tuple[str, date]] = Counter()
        self.moves: dict[int, tuple[CorpusKey, Move]] = {}

    async def unhashed(self, key: CorpusKey, listing: SourceListing) -> set[str]:
        """Sources whose content must be hashed before `sync`, as `decisions.unhashed` says."""
        return unhashed(listing, await self.documents(key))

    async def sync(self, key: CorpusKey, listing: SourceListing, parser_hash: str) -> SyncReport:
        """Record what is new, changed, moved or gone, and what another configuration made stale."""
        plan = plan_sync(listing, await self.documents(key), parser_hash)
        await self._write_plan(key, plan, parser_hash)
        return plan.report(len({file.source for file in listing.files}))

    async def _write_plan(self, key: CorpusKey, plan: SyncPlan, parser_hash: str) -> None:
        async def taken(ids: Collection[UUID]) -> set[UUID]:
            return set(ids) & set(self._entries)

        await self.tombstone(key, [row.source for row in plan.gone])
        for update in plan.updates:
            entry, file = self._entries[update.document.id], update.file
            entry.change(
                source=file.source,
                size_bytes=file.size_bytes,
                mtime_ns=file.mtime_ns,
                version=file.version,
                sha256=update.sha256,
                parser_hash=parser_hash,
                generation=update.generation,
            )
            if update.requeue:
                entry.requeue(next(self._order))
            if update.kind == "moved":
                move = Move(next(self._order), entry.row.id, file.source)
                self.moves[move.id] = (key, move)
        ids = await fresh_ids(key, [file.source for file in plan.added], taken)
        for file in plan.added:
            row = new_row(ids[file.source], file, parser_hash)
            self._entries[row.id] = Entry(key, row, next(self._order))

    def _of(self, key: CorpusKey) -> list[Entry]:
        return [entry for entry in self._entries.values() if entry.key == key]

    async def tombstone(self, key: CorpusKey, sources: Collection[str]) -> int:
        """Have these documents deleted; how many there were."""
        named = [entry for entry in self._of(key) if entry.row.source in sources]
        found = [entry for entry in named if entry.row.status != "tombstone"]
        for entry in found:
            entry.change(status="tombstone", attempts=0)
            entry.queued = next(self._order)
        return len(found)

    async def retry(self, key: CorpusKey) -> int:
        """Put every failed or partial document back in the queue; how many there were."""
        found = [entry for entry in self._of(key) if entry.row.status in ("failed", "partial")]
        for entry in found:
            entry.requeue(next(self._order))
        return len(found)

    async def requeue(self, key: CorpusKey, ids: Collection[UUID]) -> int:
        """Put these documents back in the queue, unless they wait already; how many there were."""
        states = ("done", "partial", "failed")
        found = [e for e in self._of(key) if e.row.id in ids and e.row.status in states]
        for entry in found:
            entry.requeue(next(self._order))
        return len(found)

    async def holders(self, key: CorpusKey) -> set[str]:
        """The workers that hold documents."""
        return {entry.owner for entry in self._of(key) if entry.owner is not None}

    async def expire(self, key: CorpusKey, holders: Collection[str]) -> int:
        """End the leases of these workers, which are known to be dead; how many there were."""
        now_s = self._clock_s()
        found = [e for e in self._of(key) if e.owner in holders and (e.until_s or 0) > now_s]
        for entry in found:
            entry.until_s = now_s
        return len(found)

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
        """Take up to `limit` documents that nobody holds, the longest waiting first."""
        ready = sorted(filter(self._is_free, self._of(key)), key=lambda entry: entry.queued)
        if tombstones_only:
            ready = [entry for entry in ready if entry.row.status == "tombstone"]
        for entry in ready:
            dead = entry.owner is not None and entry.row.status in ("claimed", "parsed")
            if dead and entry.row.attempts >= max_attempts:
                died = StageError("parse", f"its worker died {entry.row.attempts} times")
                entry.end("failed", died)
        chosen = [entry for entry in ready if entry.row.status in QUEUED][:limit]
        for entry in chosen:
            entry.change(parser_hash=parser_hash or entry.row.parser_hash)
        return [entry.lease(worker, self._clock_s() + lease_s) for entry in chosen]

    def _is_free(self, entry: Entry) -> bool:
        if entry.row.status == "tombstone" and any(
            move.document_id == entry.row.id for _, move in self.moves.values()
        ):
            return False
        if not entry.row.stored_generation and any(
            key == entry.key and move.document_id != entry.row.id
            for key, move in self.moves.values()
        ):
            return False
        free = entry.until_s is None or entry.until_s <= self._clock_s()
        return free and entry.row.status in QUEUED

    def _held(self, claim: Claim) -> Entry:
        if (entry := self._entries.get(claim.document_id)) and entry.is_held_by(claim):
            return entry
        raise LeaseLostError(claim.source)

    async def renew(self, claim: Claim, lease_s: float) -> None:
        """Hold the document for `lease_s` from now on."""
        self._held(claim).until_s = self._clock_s() + lease_s

    def fence(self, claim: Claim) -> MemoryFence:
        """What a store checks so that a lost claim writes nothing."""
        return MemoryFence(lambda: self._held(claim))

    async def release(self, claim: Claim) -> None:
        """Give the document back as it is; the attempt does not count."""
        if (entry := self._entries.get(claim.document_id)) and entry.token == claim.token:
            entry.release()

    async def finished_pages(self, claim: Claim, sha256: str) -> dict[int, RawPage]:
        """Pages of this very content that were read under the claim's configuration, by number."""
        entry = self._entries.get(claim.document_id)
        kept = {
            number: decode_page(page.payload)
            for number, page in (entry.pages if entry else {}).items()
            if page.payload
            and page.page.error is None
            and (page.sha256, page.parser_hash) == (sha256, claim.parser_hash)
        }
        return {number: page for number, page in kept.items() if page is not None}

    async def finish_pages(self, claim: Claim, sha256: str, pages: Sequence[RawPage]) -> None:
        """Keep pages of the content with that hash, so that no other claim reads them again."""
        entry = self._held(claim)
        self._spend(claim, pages)
        for page in pages:
            entry.pages[page.number] = PageEntry(page, sha256, claim.parser_hash, encode_page(page))

    async def finish_parsing(self, claim: Claim, result: ParseResult) -> None:
        """The document is parsed, and waits for its vectors."""
        entry = self._held(claim)
        entry.change(status="parsed")
        self._spend(claim, entry.without_checkpoint(claim, result))

    def _spend(self, claim: Claim, pages: Sequence[Page | RawPage]) -> None:
        self._vision[claim.key.tenant, _today()] += sum(page.vlm_tokens for page in pages)

    async def vision_tokens(self, tenant: str) -> int:
        """What pages of the tenant's documents have cost since the UTC day began."""
        return self._vision[tenant, _today()]

    async def finish_document(self, claim: Claim, result: ParseResult) -> None:
        """The claim's generation is in the store: flip to it, and end the claim."""
        self._held(claim).finish(claim, result)

    async def finish_deletion(self, claim: Claim) -> None:
        """The store holds nothing of the tombstone any more: drop its row."""
        entry = self._entries.get(claim.document_id)
        if entry and entry.token == claim.token and entry.row.status == "tombstone":
            del self._entries[claim.document_id]
        else:
            await self.release(claim)

    async def fail(self, claim: Claim, error: StageError) -> None:
        """The document failed, until `retry`, or until its file changes."""
        self._held(claim).end("failed", error)

    async def corpora(self, tenant: str) -> list[str]:
        """The tenant's corpora that have documents or had runs, by name."""
        keys = {*(e.key for e in self._entries.values()), *(key for key, _ in self._runs.values())}
        return sorted(key.corpus for key in keys if key.tenant == tenant)

    async def documents(self, key: CorpusKey) -> dict[str, DocumentRow]:
        """Every document by its source."""
        return {entry.row.source: entry.row for entry in self._of(key)}

    async def manifest(self, key: CorpusKey) -> dict[UUID, PointFact]:
        """Every point that the store should hold, by its id."""
        return {
            chunk.id: PointFact(entry.row.id, entry.row.stored_generation, chunk.sha256)
            for entry in self._of(key)
            if entry.row.status != "tombstone"
            for chunk in entry.chunks
        }

    async def waiting(self) -> dict[CorpusKey, int]:
        """How many documents could be claimed now, in each corpus that has any."""
        return dict(Counter(e.key for e in self._entries.values() if self._is_free(e)))

    async def status(self, key: CorpusKey) -> LedgerStatus:
        """Counts, and the last ten errors."""
        moves = sum(owner == key for owner, _ in self.moves.values())
        return status_of(self._of(key), moves)

    async def errors(self, key: CorpusKey, limit: int) -> list[LedgerError]:
        """The last errors of documents and pages, newest first."""
        return errors_of(self._of(key))[:limit]

    async def triage_rows(self, key: CorpusKey) -> AsyncIterator[PageRow]:
        """Every page, document by document."""
        for entry in sorted(self._of(key), key=lambda entry: entry.row.id):
            for page in triage_of(entry):
                yield page

    async def start_run(self, key: CorpusKey) -> UUID:
        """Note that a run begins."""
        run = Run(uuid4(), datetime.now(UTC), None, None, {})
        self._runs[run.id] = (key, run)
        return run.id

    async def end_run(
        self, run_id: UUID, status: RunStatus, totals: Mapping[str, Mapping[str, int]]
    ) -> None:
        """Note how a run ended."""
        key, run = self._runs[run_id]
        ended = replace(run, ended_at=datetime.now(UTC), status=status, totals=totals)
        self._runs[run_id] = (key, ended)

    async def runs(self, key: CorpusKey, limit: int) -> list[Run]:
        """The last runs, newest first."""
        return [run for owner, run in self._runs.values() if owner == key][::-1][:limit]


def _today() -> date:
    return datetime.now(UTC).date()
