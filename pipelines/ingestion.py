"""Local ingestion: list, compare, parse in processes, embed, store; one transaction a document.

A run that dies leaves whole documents only, and running it again finishes the work: ids depend on
content and place, and a document is written all or nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from ingest.identity import document_id
from ingest.parsed import ParseRequest, ParseResult
from ingest.sources import Changes, Listing, find_changes, hash_files, list_sources
from ingest.workers import ParserProcess, ParserSpec
from ragplane.core.errors import InputError, NonFiniteError, RagplaneError, StageError, describe
from ragplane.core.schema import Document, Route
from ragplane.core.telemetry import tracer
from retrieval.stores.base import CorpusKey, Store
from serve.encoder import Encoder

Status = Literal["completed", "completed_with_errors", "failed"]
_CHANGES = ("added", "updated", "unchanged", "deleted", "failed")


class Progress(Protocol):
    """Told how far a run is; never goes backwards."""

    def start(self, documents: int) -> None:
        """The run has this many documents to read."""
        ...

    def advance(self, source: str, pages: int) -> None:
        """A document is done, well or not."""
        ...


@dataclass(slots=True)
class IngestReport:
    """What a run did. `pages`, `chunks` and `tokens` count the documents that this run read."""

    corpus: str
    documents: Counter[str] = field(default_factory=Counter)
    pages: Counter[str] = field(default_factory=Counter)
    chunks: int = 0
    tokens: int = 0
    seconds: float = 0.0
    errors: list[StageError] = field(default_factory=list)
    stopped: bool = False

    @property
    def status(self) -> Status:
        """`completed` only if nothing failed; `failed` if nothing succeeded or the run stopped."""
        if not self.errors:
            return "completed"
        succeeded = sum(self.documents[change] for change in _CHANGES if change != "failed")
        return "failed" if self.stopped or not succeeded else "completed_with_errors"

    def as_json(self) -> dict[str, Any]:
        """The report in the form that `ragplane ingest --json` prints."""
        return {
            "status": self.status,
            "corpus": self.corpus,
            "documents": {change: self.documents[change] for change in _CHANGES},
            "pages": {
                "total": sum(self.pages.values()),
                **{route: self.pages[route] for route in get_args(Route)},
                "failed": self.pages["failed"],
            },
            "chunks": self.chunks,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 2),
            "errors": [
                {"document": e.document, "page": e.page, "stage": e.stage, "cause": e.cause}
                for e in self.errors
            ],
        }


class _EncoderDown(Exception):
    """The encoder cannot encode anything now."""

    def __init__(self, cause: RagplaneError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Ingestion:
    """One run over one corpus."""

    def __init__(
        self, store: Store, encoder: Encoder, parser: ParserSpec, workers: int, progress: Progress
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._parser = parser
        self._workers = workers
        self._progress = progress
        self._known: dict[str, Document] = {}
        self._dimensions = 0

    async def run(self, paths: Sequence[Path], key: CorpusKey) -> IngestReport:
        """Bring the corpus up to date with the files and folders in `paths`.

        A document that fails is reported and the run goes on; an encoder or a store that is down
        stops it. Raises InputError for a path that does not exist, and ConfigError for a corpus
        of another model.
        """
        started = time.perf_counter()
        report = IngestReport(key.corpus)
        with tracer.start_as_current_span("ingest.run"):
            listing = await asyncio.to_thread(list_sources, paths)
            report.errors.extend(listing.errors)
            await self._open(key, report)
            if not report.stopped:
                changes = await self._changes(listing, key)
                report.documents["unchanged"] = len(changes.unchanged)
                await self._read_all(listing, changes, key, report)
                await self._delete_gone(changes, key, report)
        report.seconds = time.perf_counter() - started
        return report

    async def _open(self, key: CorpusKey, report: IngestReport) -> None:
        try:
            probe = await self._encoder.embed(["probe"])
            fingerprint = await self._encoder.fingerprint()
        except RagplaneError as error:
            self._stop(report, "embed", error, None)
            return
        self._dimensions = probe.vectors.shape[1]
        await self._store.open_corpus(key, fingerprint=fingerprint, dimensions=self._dimensions)

    async def _changes(self, listing: Listing, key: CorpusKey) -> Changes:
        hashes = await asyncio.to_thread(hash_files, listing.files)
        self._known = await self._store.documents(key)
        return find_changes(listing, hashes, self._known)

    async def _read_all(
        self, listing: Listing, changes: Changes, key: CorpusKey, report: IngestReport
    ) -> None:
        waiting = [*changes.added, *changes.updated]
        self._progress.start(len(waiting))
        queue = iter(waiting)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(self._workers, len(waiting))):
                tasks.create_task(self._worker(queue, listing, key, report))

    async def _worker(
        self, queue: Any, listing: Listing, key: CorpusKey, report: IngestReport
    ) -> None:
        parser = ParserProcess(self._parser)
        try:
            for source in queue:  # shared by all workers: each source is taken once
                if report.stopped:
                    return
                await self._read(source, listing.files[source], parser, key, report)
        finally:
            parser.close()

    async def _read(
        self, source: str, path: Path, parser: ParserProcess, key: CorpusKey, report: IngestReport
    ) -> None:
        known = self._known.get(source)
        request = ParseRequest(
            path=path,
            source=source,
            tenant=key.tenant,
            corpus=key.corpus,
            generation=1 if known is None else known.generation + 1,
        )
        pages = 0
        try:
            result = await parser.parse(request)
            pages = len(result.pages)
            await self._write(result)
            _count(report, result, "added" if known is None else "updated")
        except StageError as error:
            self._fail(report, error, source)
        except RagplaneError as error:  # what every document needs is down
            self._stop(report, "store", error, source)
        except _EncoderDown as error:
            self._stop(report, "embed", error.cause, source)
        self._progress.advance(source, pages)

    async def _write(self, result: ParseResult) -> None:
        """Embed and store one document."""
        vectors = await self._embed([chunk.embedded_text for chunk in result.chunks])
        await self._store.replace_document(result.document, result.pages, result.chunks, vectors)

    async def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors, float32 [len(texts), dimensions].

        Raises StageError `embed` for a text the encoder refuses, _EncoderDown if it answers
        nothing.
        """
        if not texts:
            return np.zeros((0, self._dimensions), np.float32)
        try:
            embedded = await self._encoder.embed(texts)
        except (InputError, NonFiniteError) as error:
            raise StageError("embed", describe(error)) from error
        except RagplaneError as error:
            raise _EncoderDown(error) from error
        if embedded.truncated_inputs:
            raise StageError("embed", f"the encoder cut {embedded.truncated_inputs} chunks")
        return embedded.vectors

    async def _delete_gone(self, changes: Changes, key: CorpusKey, report: IngestReport) -> None:
        for source in changes.deleted:
            if report.stopped:
                return
            gone = document_id(key.tenant, key.corpus, source)
            try:
                await self._store.delete_document(key, gone)
                report.documents["deleted"] += 1
            except RagplaneError as error:
                self._stop(report, "store", error, source)

    def _fail(self, report: IngestReport, error: StageError, source: str) -> None:
        report.documents["failed"] += 1
        report.pages["failed"] += 1 if error.page else 0
        report.errors.append(StageError(error.stage, error.cause, document=source, page=error.page))

    def _stop(
        self,
        report: IngestReport,
        stage: Literal["embed", "store"],
        error: RagplaneError,
        source: str | None,
    ) -> None:
        """Note that a part every document needs is down: the rest of the run would fail alike."""
        report.stopped = True
        report.documents["failed"] += 1 if source else 0
        report.errors.append(StageError(stage, describe(error), document=source))


def _count(report: IngestReport, result: ParseResult, change: Literal["added", "updated"]) -> None:
    report.documents[change] += 1
    report.pages.update(page.route for page in result.pages)
    report.chunks += len(result.chunks)
    report.tokens += sum(chunk.tokens for chunk in result.chunks)
