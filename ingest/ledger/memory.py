"""The whole ledger in memory, for unit tests: the same decisions, nothing kept."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from uuid import UUID, uuid4

from ingest.ledger.codec import decode_page, encode_page
from ingest.ledger.decisions import (
    MAX_ATTEMPTS,
    SyncPlan,
    after_failure,
    fresh_ids,
    plan_sync,
    wants_hash,
)
from ingest.ledger.memory_state import QUEUED, Entry, PageEntry, errors_of, status_of, triage_of
from ingest.ledger.records import (
    Claim,
    DocumentRow,
    LeaseLostError,
    LedgerError,
    LedgerStatus,
    PageRow,
    Run,
    RunStatus,
    SourceListing,
    SyncReport,
    VectorWrite,
    WriteKind,
)
from ingest.parsed import ParseResult, RawPage
from ragplane.core.errors import StageError
from retrieval.stores.base import CorpusKey, PointFact


class MemoryLedger:
    """Implements `Ledger`. `clock_s` is the time that leases are measured by."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._entries: dict[UUID, Entry] = {}
        self._runs: dict[UUID, tuple[CorpusKey, Run]] = {}
        self._order = count(1)
        self.writes: dict[int, tuple[CorpusKey, VectorWrite]] = {}

    async def unhashed(self, key: CorpusKey, listing: SourceListing) -> set[str]:
        """Sources whose content must be hashed before `sync`: new, or of another size or time."""
        known = await self.documents(key)
        return {file.source for file in listing.files if wants_hash(known.get(file.source), file)}

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
                sha256=update.sha256,
                parser_hash=parser_hash,
                generation=update.generation,
            )
            if update.requeue:
                entry.requeue(next(self._order))
            if update.kind == "moved":
                self._add_write(entry, "move", file.source.encode())
        ids = await fresh_ids(key, [file.source for file in plan.added], taken)
        for file in plan.added:
            row = DocumentRow(
                id=ids[file.source],
                source=file.source,
                status="pending",
                size_bytes=file.size_bytes,
                mtime_ns=file.mtime_ns,
                sha256=file.sha256,
                parser_hash=parser_hash,
                generation=1,
                stored_generation=0,
                attempts=0,
            )
            self._entries[row.id] = Entry(key, row, next(self._order))

    def _add_write(self, entry: Entry, kind: WriteKind, payload: bytes) -> None:
        write = VectorWrite(next(self._order), entry.row.id, entry.row.generation, kind, payload)
        self.writes[write.id] = (entry.key, write)

    def _of(self, key: CorpusKey) -> list[Entry]:
        return [entry for entry in self._entries.values() if entry.key == key]

    async def tombstone(self, key: CorpusKey, sources: Collection[str]) -> int:
        """Have these documents deleted; how many there were."""
        found = [
            entry
            for entry in self._of(key)
            if entry.row.source in sources and entry.row.status != "tombstone"
        ]
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
        found = [entry for entry in self._of(key) if entry.row.id in ids]
        found = [entry for entry in found if entry.row.status in ("done", "partial", "failed")]
        for entry in found:
            entry.requeue(next(self._order))
        return len(found)

    async def holders(self, key: CorpusKey) -> set[str]:
        """The workers that hold documents."""
        return {entry.owner for entry in self._of(key) if entry.owner is not None}

    async def expire(self, key: CorpusKey, holders: Collection[str]) -> int:
        """End the leases of these workers, which are known to be dead; how many there were."""
        now_s = self._clock_s()
        found = [entry for entry in self._of(key) if entry.owner in holders]
        found = [entry for entry in found if entry.until_s is not None and entry.until_s > now_s]
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
            write.document_id == entry.row.id for _, write in self.writes.values()
        ):
            return False
        if not entry.row.stored_generation and any(
            key == entry.key and write.document_id != entry.row.id
            for key, write in self.writes.values()
        ):
            return False
        free = entry.until_s is None or entry.until_s <= self._clock_s()
        return free and entry.row.status in QUEUED

    def _held(self, claim: Claim) -> Entry:
        entry = self._entries.get(claim.document_id)
        if entry is None or not entry.is_held_by(claim):
            raise LeaseLostError(claim.source)
        return entry

    async def renew(self, claim: Claim, lease_s: float) -> None:
        """Hold the document for `lease_s` from now on."""
        self._held(claim).until_s = self._clock_s() + lease_s

    async def release(self, claim: Claim) -> None:
        """Give the document back as it is; the attempt does not count."""
        entry = self._entries.get(claim.document_id)
        if entry and entry.token == claim.token:
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
        for page in pages:
            entry.pages[page.number] = PageEntry(page, sha256, claim.parser_hash, encode_page(page))

    async def finish_parsing(self, claim: Claim) -> None:
        """The document is parsed, and waits for its vectors."""
        self._held(claim).change(status="parsed")

    async def finish_document(
        self, claim: Claim, result: ParseResult, write: bytes | None = None
    ) -> None:
        """The claim's generation is in the store, or on its way: flip to it, and end the claim."""
        entry = self._held(claim)
        entry.finish(claim, result)
        if write is not None:
            self._add_write(entry, "replace", write)

    async def finish_deletion(self, claim: Claim) -> None:
        """The store holds nothing of the tombstone any more: drop its row."""
        entry = self._entries.get(claim.document_id)
        if entry and entry.token == claim.token and entry.row.status == "tombstone":
            del self._entries[claim.document_id]
        else:
            await self.release(claim)

    async def fail(
        self,
        claim: Claim,
        error: StageError,
        *,
        retry_in_s: float | None,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        """The document failed: `failed`, or `pending` again after `retry_in_s`."""
        entry = self._held(claim)
        status = after_failure(claim.attempts, max_attempts, retry_in_s)
        entry.end(status, error)
        if status == "pending" and retry_in_s is not None:
            entry.until_s = self._clock_s() + retry_in_s

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
        writes = sum(owner == key for owner, _ in self.writes.values())
        return status_of(self._of(key), writes)

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
        found = [run for owner, run in self._runs.values() if owner == key]
        return found[::-1][:limit]
