"""The library: one object that ingests, searches and answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ingest.ledger.records import LedgerStatus, PageRow, Run
from ingest.sources import source_of
from pipelines.answering import Answerer
from pipelines.ingestion.maintenance import (
    VerifyReport,
    delete_documents,
    repair_corpus,
    require_corpus,
    verify_corpus,
)
from pipelines.ingestion.opening import open_holdings, open_parts
from pipelines.ingestion.parts import Holdings, Parts
from pipelines.ingestion.reembed import ReembedReport, drop_unused, reembed_corpus
from pipelines.ingestion.report import IngestReport, Progress, Silent
from pipelines.ingestion.run import Ingestion
from ragplane.core.config import DEFAULT_BUDGET_TOKENS, DEFAULT_TENANT, Settings, load_settings
from ragplane.core.cpu import available_cpus
from ragplane.core.errors import InputError, StageError
from ragplane.core.schema import Answer, Context, SearchResult
from retrieval.search import Searcher
from retrieval.stores import open_store
from retrieval.stores.base import CorpusKey, CorpusStatus, Store
from retrieval.stores.database import Database
from retrieval.stores.postgres import PostgresStore
from serve.client import HttpEncoder
from serve.encoder import Encoder
from serve.generator import HttpGenerator
from serve.local import LocalEncoder

if TYPE_CHECKING:
    from ragplane.blocking import SyncPlane


class Plane:
    """Documents in, cited answers out. Open it with `async with Plane.open() as plane`.

    For programs without an event loop: `with Plane.open().sync as plane`, whose methods are the
    same without `await`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._database: Database | None = None
        self._store: Store | None = None
        self._encoder: Encoder | None = None
        self._generator: HttpGenerator | None = None
        self._opening = asyncio.Lock()

    @classmethod
    def open(cls, **settings: Any) -> Plane:
        """A plane with these settings (the fields of Settings) over the environment's and the
        file's.

        Nothing is started before it is needed: the first call starts the embedded database and
        loads the model. Raises ConfigError for a setting that is wrong.
        """
        return cls(load_settings(**settings))

    @cached_property
    def sync(self) -> SyncPlane:
        """This plane for programs without an event loop."""
        from ragplane.blocking import SyncPlane

        return SyncPlane(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close connections and threads; the embedded database stops with its last user.

        Every part is closed, also if another fails to. A closed plane opens again when it is used.
        """
        async with AsyncExitStack() as stack:
            for part in (self._database, self._store, self._encoder, self._generator):
                if part is not None:
                    stack.push_async_callback(part.aclose)
            self._generator = self._encoder = self._store = self._database = None

    async def ingest(
        self,
        paths: Sequence[str | Path],
        *,
        corpus: str,
        tenant: str = DEFAULT_TENANT,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Bring `corpus` up to date with files, folders and s3:// addresses; see IngestReport.

        `workers` is the number of parser processes (default: one for each CPU). Documents that
        fail are in the report; raises InputError for a path that does not exist, ConfigError for
        a corpus of another model, UnavailableError if the store cannot be opened.
        """
        if isinstance(paths, str | Path):
            raise InputError("paths is one path, but must be a list of paths", param="paths")
        if workers is not None and workers < 1:
            raise InputError(f"workers is {workers}, but must be at least 1", param="workers")
        count = workers or available_cpus()
        run = Ingestion(await self.parts(count), count, progress or Silent())
        return await run.run(paths, CorpusKey(tenant, corpus))

    async def search(
        self, query: str, *, corpus: str, tenant: str = DEFAULT_TENANT, k: int = 5
    ) -> SearchResult:
        """The best `k` chunks for `query`, best first, with each stage's score and time.

        Raises InputError for an empty query, a `k` out of 1 to 200 or an unknown corpus,
        ConfigError for a corpus that another model embedded, UnavailableError if store or encoder
        are down.
        """
        store, encoder = await self._parts()
        found = await Searcher(store, encoder).search(query, CorpusKey(tenant, corpus), k)
        return found.result

    async def context(
        self,
        question: str,
        *,
        corpus: str,
        tenant: str = DEFAULT_TENANT,
        budget: int = DEFAULT_BUDGET_TOKENS,
    ) -> Context:
        """The page to put before a model: numbered sources, at most `budget` tokens. Raises as
        `search`.
        """
        answerer = await self._answerer()
        return await answerer.context(question, CorpusKey(tenant, corpus), budget)

    async def ask(
        self,
        question: str,
        *,
        corpus: str,
        tenant: str = DEFAULT_TENANT,
        budget: int = DEFAULT_BUDGET_TOKENS,
    ) -> Answer:
        """A cited answer from at most `budget` tokens of context; its text is empty if nothing
        fits.

        Extractive, or generated where `generate_url` is set. Raises as `search`.
        """
        answerer = await self._answerer()
        return await answerer.ask(question, CorpusKey(tenant, corpus), budget)

    async def status(self, *, corpus: str, tenant: str = DEFAULT_TENANT) -> CorpusStatus | None:
        """What the corpus holds; None if it does not exist."""
        store = await self._open_store()
        return await store.status(CorpusKey(tenant, corpus))

    async def progress(self, *, corpus: str, tenant: str = DEFAULT_TENANT) -> LedgerStatus:
        """What the ledger says of a corpus: documents by status, failures by stage, errors."""
        holdings = await self.holdings()
        return await holdings.ledger.status(CorpusKey(tenant, corpus))

    async def runs(
        self, *, corpus: str, tenant: str = DEFAULT_TENANT, limit: int = 5
    ) -> Sequence[Run]:
        """The last runs over a corpus, newest first."""
        holdings = await self.holdings()
        return await holdings.ledger.runs(CorpusKey(tenant, corpus), limit)

    async def corpora(self, *, tenant: str = DEFAULT_TENANT) -> list[str]:
        """The names of the tenant's corpora."""
        holdings = await self.holdings()
        return await holdings.ledger.corpora(tenant)

    async def triage_rows(
        self, *, corpus: str, tenant: str = DEFAULT_TENANT
    ) -> AsyncIterator[PageRow]:
        """Each page with its signals, route, reason and cost. Raises as `verify`."""
        holdings, key = await self.holdings(), CorpusKey(tenant, corpus)
        await require_corpus(holdings, key)
        return holdings.ledger.triage_rows(key)

    async def verify(
        self, *, corpus: str, tenant: str = DEFAULT_TENANT, repair: bool = False
    ) -> VerifyReport:
        """Compare the store with the ledger, mend it if `repair` is wanted. Raises InputError for
        an unknown corpus."""
        holdings, key = await self.holdings(), CorpusKey(tenant, corpus)
        await require_corpus(holdings, key)
        if not repair:
            return await verify_corpus(holdings, key)
        count = available_cpus()
        return await repair_corpus(await self.parts(count), key, count)

    async def delete(
        self, paths: Sequence[str | Path] | None, *, corpus: str, tenant: str = DEFAULT_TENANT
    ) -> tuple[int, Sequence[StageError]]:
        """Remove documents, given as files or source URIs (None: all); how many, and errors.

        Raises InputError for an unknown corpus or document.
        """
        holdings, key = await self.holdings(), CorpusKey(tenant, corpus)
        wanted = None if paths is None else {_source(path) for path in paths}
        return await delete_documents(holdings, key, wanted)

    async def reembed(self, *, corpus: str, tenant: str = DEFAULT_TENANT) -> ReembedReport:
        """Bring the corpus to this plane's embedding model while planes with the old one search it.

        The old vectors stay, for a way back, until `drop_unused`. Raises as `reembed_corpus`; run
        again, it goes on where it stopped.
        """
        return await reembed_corpus(await self.parts(1), CorpusKey(tenant, corpus))

    async def drop_unused(self, *, corpus: str, tenant: str = DEFAULT_TENANT) -> str | None:
        """Remove the vectors of the model before `reembed`, or of one half done; whose they were.

        Raises InputError for an unknown corpus.
        """
        return await drop_unused(await self.holdings(), CorpusKey(tenant, corpus))

    async def holdings(self) -> Holdings:
        """What corpora are kept in; no model is read."""
        return open_holdings(self._settings, await self._open_store(), await self._open_database())

    async def parts(self, workers: int) -> Parts:
        """What ingestion works with, for `workers` parser processes."""
        store = await self._open_store()
        database = await self._open_database()
        return open_parts(self._settings, store, database, self._encoder_now, workers)

    async def _answerer(self) -> Answerer:
        store, encoder = await self._parts()
        return Answerer(
            Searcher(store, encoder),
            encoder,
            self._open_generator(),
            self._settings.abstain_below,
        )

    async def _parts(self) -> tuple[Store, Encoder]:
        return await self._open_store(), await self._encoder_now()

    async def _encoder_now(self) -> Encoder:
        async with self._opening:
            if self._encoder is None:
                self._encoder = await self._open_encoder()
            return self._encoder

    async def _open_database(self) -> Database:
        async with self._opening:
            if self._database is None:
                self._database = await Database.open(self._settings)
            return self._database

    async def _open_store(self) -> Store:
        if self._settings.store in (None, "postgres"):
            database = await self._open_database()
            self._store = self._store or PostgresStore(database)
            return self._store
        async with self._opening:
            if self._store is None:
                self._store = await open_store(self._settings)
            return self._store

    async def _open_encoder(self) -> Encoder:
        settings = self._settings
        if settings.encoder_url is None:
            return await LocalEncoder.open(settings)
        key = settings.encoder_api_key
        return HttpEncoder(settings.encoder_url, api_key=key.get_secret_value() if key else None)

    def _open_generator(self) -> HttpGenerator | None:
        settings = self._settings
        if self._generator is None and settings.generate_url is not None:
            key = settings.generate_api_key
            self._generator = HttpGenerator(
                settings.generate_url,
                model=settings.generate_model,
                api_key=key.get_secret_value() if key else None,
                timeout_s=settings.generate_timeout_s,
            )
        return self._generator


def _source(path: str | Path) -> str:
    return str(path) if "://" in str(path) else source_of(Path(path))
