"""The rows of the ledger in memory, and what is told of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from ingest.ledger.decisions import after_release, storable
from ingest.ledger.records import (
    Claim,
    DocumentRow,
    DocumentStatus,
    LedgerError,
    LedgerStatus,
    PageRow,
    SourceFile,
)
from ingest.parsed import ParseResult, RawPage
from ragplane.core.errors import StageError
from ragplane.core.schema import Chunk, Page
from retrieval.stores.base import CorpusKey

QUEUED = ("pending", "claimed", "parsed", "tombstone")


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page and its checkpoint, of one content under one configuration."""

    page: Page | RawPage
    sha256: str
    parser_hash: str
    payload: bytes | None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


def new_row(id_: UUID, file: SourceFile, parser_hash: str) -> DocumentRow:
    """The row of a document that was not known."""
    return DocumentRow(
        id=id_,
        source=file.source,
        status="pending",
        size_bytes=file.size_bytes,
        mtime_ns=file.mtime_ns,
        sha256=file.sha256,
        parser_hash=parser_hash,
        generation=1,
        stored_generation=0,
        attempts=0,
        version=file.version,
    )


@dataclass(slots=True)
class Entry:
    """A document with its lease, its last error, its chunks and pages."""

    key: CorpusKey
    row: DocumentRow
    queued: int
    token: int = 0
    owner: str | None = None
    until_s: float | None = None
    error: StageError | None = None
    failed_at: datetime | None = None
    chunks: tuple[Chunk, ...] = ()
    pages: dict[int, PageEntry] = field(default_factory=dict)

    def change(self, **values: Any) -> None:
        """Change columns of the row."""
        self.row = replace(self.row, **values)

    def requeue(self, place: int) -> None:
        """Put it into the queue at this place, with all its attempts; a lease stays."""
        self.change(status="pending", attempts=0)
        self.error, self.queued = None, place

    def lease(self, worker: str, until_s: float) -> Claim:
        """Give it to a worker."""
        tombstone = self.row.status == "tombstone"
        status: DocumentStatus = "tombstone" if tombstone else "claimed"
        self.change(status=status, attempts=self.row.attempts + 1)
        self.token += 1
        self.owner, self.until_s = worker, until_s
        return Claim(
            key=self.key,
            document_id=self.row.id,
            source=self.row.source,
            sha256=self.row.sha256,
            parser_hash=self.row.parser_hash,
            generation=self.row.generation,
            stored_generation=self.row.stored_generation,
            attempts=self.row.attempts,
            token=self.token,
            tombstone=tombstone,
        )

    def is_held_by(self, claim: Claim) -> bool:
        """Whether the claim still stands and still is about the same content."""
        row = self.row
        now = (self.token, row.generation, row.source, row.status == "tombstone")
        return now == (claim.token, claim.generation, claim.source, claim.tombstone)

    def release(self) -> None:
        """End the lease; the attempt does not count."""
        status = after_release(self.row.status)
        self.change(status=status, attempts=max(self.row.attempts - 1, 0))
        self.owner = self.until_s = None

    def end(self, status: DocumentStatus, error: StageError | None) -> None:
        """End the lease with an outcome."""
        self.change(status=status)
        self.owner = self.until_s = None
        self.error, self.failed_at = error, datetime.now(UTC)

    def without_checkpoint(self, claim: Claim, result: ParseResult) -> list[Page]:
        """The pages that no checkpoint of this content and configuration has."""
        sha256 = result.document.sha256
        return [
            page
            for page in result.pages
            if _payload(self.pages.get(page.number), claim, sha256) is None
        ]

    def finish(self, claim: Claim, result: ParseResult) -> None:
        """Flip to the claim's generation."""
        sha256, old = result.document.sha256, self.pages
        self.pages = {}
        for page in result.pages:
            payload = _payload(old.get(page.number), claim, sha256)
            self.pages[page.number] = PageEntry(page, sha256, claim.parser_hash, payload)
        self.chunks = result.chunks
        self.change(sha256=sha256, stored_generation=claim.generation, attempts=0)
        self.end("partial" if any(page.error for page in result.pages) else "done", None)


def _payload(kept: PageEntry | None, claim: Claim, sha256: str) -> bytes | None:
    """The checkpoint of a page, if it is of this content and configuration."""
    same = kept and (kept.sha256, kept.parser_hash) == (sha256, claim.parser_hash)
    return kept.payload if kept and same else None


def status_of(entries: Sequence[Entry], writes: int) -> LedgerStatus:
    """The status of these documents, given the number of pending writes."""
    pages = [page.page for entry in entries for page in entry.pages.values()]
    failures = [entry.error for entry in entries if entry.row.status == "failed"]
    failures += [page.error for page in pages]
    return LedgerStatus(
        documents=Counter(entry.row.status for entry in entries),
        stages=Counter(error.stage for error in failures if error),
        pages=Counter(page.route for page in pages),
        writes=writes,
        errors=tuple(errors_of(entries)[:10]),
    )


def errors_of(entries: Sequence[Entry]) -> list[LedgerError]:
    """The errors of these documents and their pages, newest first."""
    return sorted(_errors(entries), key=lambda error: error.at, reverse=True)


def _errors(entries: Sequence[Entry]) -> Iterator[LedgerError]:
    for entry in entries:
        source = entry.row.source
        if (error := entry.error) and entry.failed_at:
            cause = storable(error.cause)
            yield LedgerError(source, None, error.stage, cause, entry.failed_at)
        for number, kept in entry.pages.items():
            if error := kept.page.error:
                yield LedgerError(source, number, error.stage, storable(error.cause), kept.at)


def triage_of(entry: Entry) -> Iterator[PageRow]:
    """The triage ledger's rows of a document."""
    for number, kept in sorted(entry.pages.items()):
        page, source = kept.page, entry.row.source
        error = page.error
        yield PageRow(
            source=source,
            number=number,
            route=page.route,
            reason=page.reason,
            signals=page.signals,
            seconds=page.seconds,
            vlm_tokens=page.vlm_tokens,
            confidence=page.confidence,
            error=StageError(error.stage, error.cause, document=source, page=number)
            if error
            else None,
        )
