"""What a ledger is told and what it tells. Frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from ragplane.core.errors import Stage, StageError
from ragplane.core.schema import PageSignals, Route
from retrieval.stores.base import CorpusKey

DocumentStatus = Literal["pending", "claimed", "parsed", "done", "partial", "failed", "tombstone"]
RunStatus = Literal["completed", "completed_with_errors", "failed"]


class LeaseLostError(StageError):
    """The document was given to another worker, or changed: what this one did is not taken."""

    def __init__(self, document: str) -> None:
        super().__init__("store", "its lease was lost to another claim", document=document)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A listed file. `mtime_ns` counts from 1970.

    It is None where the time cannot be trusted (the file is being written): then the content
    decides. `sha256` is None where the content was not read: then size and time decide. `version`
    stands for the time of an object: its store gives other content another.
    """

    source: str
    size_bytes: int
    mtime_ns: int | None
    sha256: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class SourceListing:
    """Files, and the folders (URIs) that were listed whole: only below them can a file be gone."""

    files: tuple[SourceFile, ...]
    complete_folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document in the ledger.

    `generation` counts the versions of its content (or of the parser's configuration) that were
    seen, from 1; `stored_generation` is the one that the store holds, 0 for none.
    """

    id: UUID
    source: str
    status: DocumentStatus
    size_bytes: int
    mtime_ns: int | None
    sha256: str | None
    parser_hash: str
    generation: int
    stored_generation: int
    attempts: int
    version: str | None = None


@dataclass(frozen=True, slots=True)
class SyncReport:
    """How many documents a sync found new, changed, to be parsed anew, moved, unchanged, gone.

    `stale` ones are unchanged, but were parsed under another configuration.
    """

    added: int = 0
    changed: int = 0
    stale: int = 0
    moved: int = 0
    unchanged: int = 0
    gone: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on one document until the lease ends.

    `token` grows with every claim of the document; a commit under an older one is refused. A
    `tombstone` is to be deleted from the store, everything else to be read and stored as
    `generation`, in place of `stored_generation` (0: the store has none; equal: some of it failed,
    or its points were wrong). `attempts` counts this one.
    """

    key: CorpusKey
    document_id: UUID
    source: str
    sha256: str | None
    parser_hash: str
    generation: int
    stored_generation: int
    attempts: int
    token: int
    tombstone: bool


@dataclass(frozen=True, slots=True)
class PageRow:
    """The triage ledger's row of a page: what was measured, decided and spent."""

    source: str
    number: int
    route: Route
    reason: str
    signals: PageSignals
    seconds: float
    vlm_tokens: int
    confidence: float | None
    error: StageError | None


@dataclass(frozen=True, slots=True)
class LedgerError:
    """What went wrong with a document, or with one of its pages."""

    source: str
    page: int | None
    stage: Stage
    cause: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """Documents by status, failed documents and pages by stage, pages by route.

    `writes` counts moves that the store has yet to take; `errors` are the last.
    """

    documents: Mapping[str, int]
    stages: Mapping[str, int]
    pages: Mapping[str, int]
    writes: int
    errors: tuple[LedgerError, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """A document's new source, which the store has yet to take. Twice does no harm."""

    id: int
    document_id: UUID
    source: str


@dataclass(frozen=True, slots=True)
class Run:
    """One run over a corpus. One that was killed has neither `ended_at` nor `status`."""

    id: UUID
    started_at: datetime
    ended_at: datetime | None
    status: RunStatus | None
    totals: Mapping[str, Mapping[str, int]]
