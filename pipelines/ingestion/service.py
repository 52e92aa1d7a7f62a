"""A worker: claims documents of any corpus from the ledger until it is told to stop."""

from __future__ import annotations

import asyncio
from collections import Counter

import structlog

from ingest.ledger.records import Claim
from ingest.parsed import ParseResult
from pipelines.ingestion.documents import Documents
from pipelines.ingestion.parts import MOST_DEATHS, Embedders, Parts, worker_name
from pipelines.ingestion.patience import patiently
from pipelines.ingestion.pool import Pool
from pipelines.ingestion.relay import relay
from ragplane.core.errors import ConfigError, StageError, describe
from retrieval.stores.base import CorpusKey

_LOOK_AGAIN_S = 1.0
_log = structlog.get_logger()


class Worker:
    """Works beside others, on this machine or elsewhere, on what `ragplane ingest` queued.

    The files must be where their sources say, so several machines share a folder.
    """

    def __init__(self, parts: Parts, workers: int) -> None:
        self._parts = parts
        self._workers = workers
        self._embedders = Embedders(parts)
        self._left_out: set[CorpusKey] = set()
        self._parser_hash = parts.parser.options.fingerprint()
        self._stopping = asyncio.Event()
        self.counts: Counter[str] = Counter()

    def stop(self) -> None:
        """Take no more documents; those that are under way are finished."""
        self._stopping.set()

    async def run(self, *, until_idle: bool) -> Counter[str]:
        """Work until stopped, or `until_idle` until nothing waits; outcomes and their counts."""
        parts = self._parts
        documents = Documents(parts.ledger, parts.store, parts.terms)
        outcomes = _Logged(self.counts)
        pool = Pool(documents, self._embedders.of, parts.parser, self._workers, outcomes)
        await pool.run(lambda: self._next(until_idle=until_idle))
        return self.counts

    async def _next(self, *, until_idle: bool) -> Claim | None:
        while not self._stopping.is_set():
            claim = await patiently(self._claim, "store", self._parts.terms.patience_s)
            if claim is not None or until_idle:
                return claim
            await self._pause()
        return None

    async def _claim(self) -> Claim | None:
        """From the corpus that has the least to do: a long one does not starve the others."""
        parts = self._parts
        waiting = await parts.ledger.waiting()
        for key in sorted(waiting, key=lambda key: (waiting[key], key)):
            if not await self._is_ours(key):
                continue
            await relay(parts.outbox, parts.store, key, worker_name())
            lease_s = parts.terms.lease_s
            claims = await parts.ledger.claim(
                key,
                worker_name(),
                lease_s=lease_s,
                limit=1,
                max_attempts=MOST_DEATHS,
                parser_hash=self._parser_hash,
            )
            if claims:
                return claims[0]
        return None

    async def _is_ours(self, key: CorpusKey) -> bool:
        """Whether the corpus has this worker's model; one that has not is left to others."""
        if key in self._left_out:
            return False
        try:
            await self._embedders.of(key)
        except ConfigError as error:
            _log.error("corpus left out", corpus=key.corpus, cause=describe(error))
            self._left_out.add(key)
            return False
        return True

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(_LOOK_AGAIN_S):
                await self._stopping.wait()
        except TimeoutError:
            return


class _Logged:
    """Writes a log line for each document."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def read(self, claim: Claim, result: ParseResult) -> None:
        """See Outcomes."""
        self._counts["read"] += 1
        _log.info("read", document=claim.source, pages=len(result.pages))

    def deleted(self, claim: Claim) -> None:
        """See Outcomes."""
        self._counts["deleted"] += 1
        _log.info("deleted", document=claim.source)

    def failed(self, claim: Claim, error: StageError) -> None:
        """See Outcomes."""
        self._counts["failed"] += 1
        _log.warning("failed", document=claim.source, stage=error.stage, cause=error.cause)

    def lost(self, claim: Claim) -> None:
        """See Outcomes."""
        self._counts["lost"] += 1
        _log.warning("lease lost", document=claim.source)

    def stop(self, error: StageError) -> None:
        """See Outcomes."""
        self._counts["stopped"] += 1
        _log.error("stopped", stage=error.stage, cause=error.cause)
