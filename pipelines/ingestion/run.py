"""A local run: list, compare with the ledger, work off what is new, changed or gone."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import structlog

from ingest.ledger.files import add_hashes, stat_files
from ingest.ledger.records import Claim, RunStatus
from ingest.parsed import ParseResult
from ingest.sources import Listing, list_sources
from pipelines.ingestion.documents import Documents
from pipelines.ingestion.parts import MOST_DEATHS, Embedders, Parts, is_dead, worker_name
from pipelines.ingestion.patience import PartDownError, patiently
from pipelines.ingestion.pool import Pool
from pipelines.ingestion.relay import relay
from pipelines.ingestion.report import IngestReport, Progress, change_of
from ragplane.core.errors import StageError
from ragplane.core.telemetry import tracer
from retrieval.stores.base import CorpusKey

_LOOK_AGAIN_S = 0.5
_CACHED_VECTORS = 200_000
_TO_READ = ("pending", "claimed", "parsed")
_OPEN = (*_TO_READ, "tombstone")
_log = structlog.get_logger()


class Ingestion:
    """Runs over corpora. One run at a time."""

    def __init__(self, parts: Parts, workers: int, progress: Progress) -> None:
        self._parts = parts
        self._workers = workers
        self._progress = progress

    async def run(self, paths: Sequence[str | Path], key: CorpusKey) -> IngestReport:
        """Bring the corpus up to date with the files, folders and s3:// addresses in `paths`.

        A document that fails is reported and the run goes on; what failed before is tried again.
        An encoder or a store that stays down stops the run. Raises InputError for a path that
        does not exist, and ConfigError for a corpus of another model.
        """
        started = time.perf_counter()
        report = IngestReport(key.corpus)
        with tracer.start_as_current_span("ingest.run"):
            listing = await asyncio.to_thread(list_sources, paths)
            report.errors.extend(listing.errors)
            try:
                await self._noted(listing, key, report)
            except StageError as error:
                report.stop(error)
        report.seconds = time.perf_counter() - started
        return report

    async def _noted(self, listing: Listing, key: CorpusKey, report: IngestReport) -> None:
        """Work, and leave its end in the history of runs."""
        ledger, patience_s = self._parts.ledger, self._parts.terms.patience_s
        run_id = await patiently(lambda: ledger.start_run(key), "store", patience_s)
        status: RunStatus = "failed"
        try:
            await self._work(listing, key, report)
            status = report.status
        finally:
            with suppress(PartDownError):  # the documents are what counts
                await patiently(
                    lambda: ledger.end_run(run_id, status, _totals(report)),
                    "store",
                    0 if report.stopped else patience_s,
                )

    async def _work(self, listing: Listing, key: CorpusKey, report: IngestReport) -> None:
        patience_s = self._parts.terms.patience_s
        try:
            await patiently(lambda: self._sync(listing, key, report), "store", patience_s)
            await self._work_off(key, report)
        except StageError as error:
            report.stop(error)

    async def _sync(self, listing: Listing, key: CorpusKey, report: IngestReport) -> None:
        """Tell the ledger what there is. May run twice: it counts only at its end."""
        parts = self._parts
        stats = await asyncio.to_thread(stat_files, listing)
        unknown = await parts.ledger.unhashed(key, stats)
        files = await asyncio.to_thread(add_hashes, stats, listing, unknown)
        await parts.ledger.retry(key)
        dead = {worker for worker in await parts.ledger.holders(key) if is_dead(worker)}
        await parts.ledger.expire(key, dead)
        found = await parts.ledger.sync(key, files, parts.parser.options.fingerprint())
        states = (await parts.ledger.status(key)).documents
        left = sum(states.get(state, 0) for state in _TO_READ)
        left -= found.added + found.changed + found.stale
        await relay(parts.outbox, parts.store, key, worker_name())
        report.synced(found)
        report.documents["unchanged"] -= min(left, found.unchanged)  # not done by an earlier run

    async def _work_off(self, key: CorpusKey, report: IngestReport) -> None:
        parts, embedders = self._parts, Embedders(self._parts)
        patience_s = parts.terms.patience_s
        found = await patiently(lambda: parts.ledger.status(key), "store", patience_s)
        states = found.documents
        self._progress.start(sum(states.get(state, 0) for state in _OPEN))
        # The first documents are parsed while the encoder loads.
        to_read = any(states.get(state) for state in _TO_READ)
        opening = asyncio.ensure_future(embedders.of(key)) if to_read else None
        documents = Documents(parts.ledger, parts.store, parts.terms)
        outcomes = _Outcomes(report, self._progress)
        pool = Pool(documents, embedders.of, parts.parser, self._workers, outcomes)
        try:
            await pool.run(_Claims(parts, key, pool).next)
        except BaseException:
            if opening is not None:
                opening.cancel()
            raise
        if opening is not None:
            await opening  # a corpus of another model is the caller's mistake, and raised
        if report.chunks and not report.stopped:
            await patiently(lambda: parts.cache.prune(_CACHED_VECTORS), "store", patience_s)


class _Claims:
    """The corpus's claims, until nobody holds one any more."""

    def __init__(self, parts: Parts, key: CorpusKey, pool: Pool) -> None:
        self._parts = parts
        self._key = key
        self._pool = pool
        self._name = worker_name()
        self._parser_hash = parts.parser.options.fingerprint()
        self._told = False

    async def next(self) -> Claim | None:
        """The next claim. Waits for documents that another worker holds: it may die."""
        terms = self._parts.terms
        while not self._pool.stopped:
            claims = await patiently(self._claim, "store", terms.patience_s)
            if claims:
                return claims[0]
            holders = await patiently(
                lambda: self._parts.ledger.holders(self._key), "store", terms.patience_s
            )
            state = await patiently(
                lambda: self._parts.ledger.status(self._key), "store", terms.patience_s
            )
            if holders <= {self._name} and not state.writes:
                return None
            await patiently(self._relay, "store", terms.patience_s)
            if not self._told:
                _log.warning("waiting for documents that another worker holds")
                self._told = True
            await asyncio.sleep(min(_LOOK_AGAIN_S, terms.lease_s))
        return None

    async def _claim(self) -> list[Claim]:
        return await self._parts.ledger.claim(
            self._key,
            self._name,
            lease_s=self._parts.terms.lease_s,
            limit=1,
            max_attempts=MOST_DEATHS,
            parser_hash=self._parser_hash,
        )

    async def _relay(self) -> None:
        await relay(self._parts.outbox, self._parts.store, self._key, self._name)


class _Outcomes:
    """Counts in the report and moves the progress on."""

    def __init__(self, report: IngestReport, progress: Progress) -> None:
        self._report = report
        self._progress = progress

    def read(self, claim: Claim, result: ParseResult) -> None:
        """See Outcomes."""
        self._report.read(result, change_of(claim))
        pages: Counter[str] = Counter(page.route for page in result.pages if not page.error)
        self._progress.advance(claim.source, pages, len(result.pages) - pages.total())

    def deleted(self, claim: Claim) -> None:
        """See Outcomes."""
        self._report.documents["deleted"] += 1
        self._progress.advance(claim.source, {}, 0)

    def failed(self, claim: Claim, error: StageError) -> None:
        """See Outcomes."""
        self._report.failed(error, claim.source)
        self._progress.advance(claim.source, {}, 1)

    def lost(self, claim: Claim) -> None:
        """See Outcomes."""
        _log.warning("lease lost", document=claim.source)

    def stop(self, error: StageError) -> None:
        """See Outcomes."""
        self._report.stop(error)


def _totals(report: IngestReport) -> dict[str, dict[str, int]]:
    return {
        "documents": dict(report.documents),
        "pages": dict(report.pages),
        "stages": dict(report.stages),
    }
