"""What a run did, and who is told while it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from ingest.ledger.records import Claim, RunStatus, SyncReport
from ingest.parsed import ParseResult
from ragplane.core.errors import StageError
from ragplane.core.schema import Route

Change = Literal["added", "updated", "retried", "moved", "unchanged", "deleted", "failed"]


def change_of(claim: Claim) -> Change:
    """What reading the claim's document came to: by what the store had of it before.

    `retried` is the same version again, because pages of it failed or its points were wrong.
    """
    if not claim.stored_generation:
        return "added"
    return "retried" if claim.stored_generation == claim.generation else "updated"


class Progress(Protocol):
    """Told how far a run is; never goes backwards."""

    def start(self, documents: int) -> None:
        """The run has this many documents to read."""
        ...

    def advance(self, source: str, pages: Mapping[str, int], errors: int) -> None:
        """A document is done, well or not: its pages by route, and how much of it failed."""
        ...


class Silent:
    """Progress for nobody."""

    def start(self, documents: int) -> None:
        """See Progress."""

    def advance(self, source: str, pages: Mapping[str, int], errors: int) -> None:
        """See Progress."""


@dataclass(slots=True)
class IngestReport:
    """What a run did. `pages`, `chunks` and `tokens` count the documents that this run read.

    `degraded` counts pages whose text is less than it could be, for want of a vision model.
    """

    corpus: str
    documents: Counter[str] = field(default_factory=Counter)
    pages: Counter[str] = field(default_factory=Counter)
    chunks: int = 0
    tokens: int = 0
    vlm_tokens: int = 0
    degraded: int = 0
    seconds: float = 0.0
    errors: list[StageError] = field(default_factory=list)
    stopped: bool = False

    @property
    def status(self) -> RunStatus:
        """`completed` only if nothing failed; `failed` if nothing succeeded or the run stopped."""
        if not self.errors:
            return "completed"
        succeeded = sum(self.documents.values()) - self.documents["failed"]
        return "failed" if self.stopped or not succeeded else "completed_with_errors"

    @property
    def stages(self) -> Counter[str]:
        """Errors by the stage that they name."""
        return Counter(error.stage for error in self.errors)

    def synced(self, found: SyncReport) -> None:
        """Count what the listing said without reading."""
        self.documents["unchanged"] += found.unchanged
        self.documents["moved"] += found.moved

    def read(self, result: ParseResult, change: Change) -> None:
        """Count a document that is in the store now."""
        self.documents[change] += 1
        self.pages.update("failed" if page.error else page.route for page in result.pages)
        self.chunks += len(result.chunks)
        self.tokens += sum(chunk.tokens for chunk in result.chunks)
        self.vlm_tokens += sum(page.vlm_tokens for page in result.pages)
        self.degraded += sum(
            any(note.kind == "degraded" for note in page.notes) for page in result.pages
        )
        source = result.document.source
        self.errors.extend(
            StageError(page.error.stage, page.error.cause, document=source, page=page.number)
            for page in result.pages
            if page.error
        )

    def failed(self, error: StageError, source: str) -> None:
        """Count a document that could not be read."""
        self.documents["failed"] += 1
        self.pages["failed"] += 1 if error.page else 0
        self.errors.append(StageError(error.stage, error.cause, document=source, page=error.page))

    def stop(self, error: StageError) -> None:
        """Note that a part every document needs is down: the rest of the run would fail alike."""
        if not self.stopped:
            self.errors.append(error)
        self.stopped = True

    def as_json(self) -> dict[str, Any]:
        """The report in the form that `ragplane ingest --json` prints."""
        return {
            "status": self.status,
            "corpus": self.corpus,
            "documents": {change: self.documents[change] for change in get_args(Change)},
            "pages": {
                "total": sum(self.pages.values()),
                **{route: self.pages[route] for route in get_args(Route)},
                "failed": self.pages["failed"],
                "degraded": self.degraded,
            },
            "chunks": self.chunks,
            "tokens": self.tokens,
            "vlm_tokens": self.vlm_tokens,
            "seconds": round(self.seconds, 2),
            "stages": dict(self.stages),
            "errors": [
                {"document": e.document, "page": e.page, "stage": e.stage, "cause": e.cause}
                for e in self.errors
            ],
        }
