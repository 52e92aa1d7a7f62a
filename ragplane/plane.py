"""The library: one object that ingests, searches and answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from functools import cached_property, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ingest.workers import ParserSpec
from pipelines.answering import Answerer
from pipelines.ingestion import Ingestion, IngestReport, Progress
from ragplane.core.config import DEFAULT_BUDGET_TOKENS, DEFAULT_TENANT, Settings, load_settings
from ragplane.core.cpu import available_cpus
from ragplane.core.errors import InputError, UnavailableError
from ragplane.core.models import read_model
from ragplane.core.schema import Answer, Context, SearchResult
from retrieval.search import Searcher
from retrieval.stores import open_store
from retrieval.stores.base import CorpusKey, CorpusStatus, Store
from serve.client import HttpEncoder
from serve.encoder import Encoder
from serve.generator import HttpGenerator
from serve.local import LocalEncoder

P = ParamSpec("P")
T = TypeVar("T")


class _Silent:
    """Progress for nobody."""

    def start(self, documents: int) -> None:
        """See Progress."""

    def advance(self, source: str, pages: int) -> None:
        """See Progress."""


class Plane:
    """Documents in, cited answers out. Open it with `async with Plane.open() as plane`.

    For programs without an event loop: `with Plane.open().sync as plane`, whose methods are the
    same without `await`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
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
        return SyncPlane(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close connections and threads; the embedded database stops with its last user.

        Every part is closed, also if another fails to. A closed plane opens again when it is used.
        """
        async with AsyncExitStack() as stack:
            for part in (self._store, self._encoder, self._generator):
                if part is not None:
                    stack.push_async_callback(part.aclose)
            self._generator = self._encoder = self._store = None

    async def ingest(
        self,
        paths: Sequence[str | Path],
        *,
        corpus: str,
        tenant: str = DEFAULT_TENANT,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Bring `corpus` up to date with files and folders; see IngestReport for what comes back.

        `workers` is the number of parser processes (default: one for each CPU). Documents that
        fail are in the report; raises InputError for a path that does not exist, ConfigError for
        a corpus of another model, UnavailableError if the store cannot be opened.
        """
        if isinstance(paths, str | Path):
            raise InputError("paths is one path, but must be a list of paths", param="paths")
        if workers is not None and workers < 1:
            raise InputError(f"workers is {workers}, but must be at least 1", param="workers")
        store, encoder = await self._parts()
        count = workers or available_cpus()
        files = read_model(self._settings.embed_model)
        spec = ParserSpec(
            tokenizer_file=files.folder / "tokenizer.json",
            limit_tokens=min(self._settings.chunk_tokens, files.max_tokens),
            ocr_threads=max(1, available_cpus() // count),
            timeout_s=self._settings.document_timeout_s,
        )
        run = Ingestion(store, encoder, spec, count, progress or _Silent())
        return await run.run([Path(path) for path in paths], CorpusKey(tenant, corpus))

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

    async def _answerer(self) -> Answerer:
        store, encoder = await self._parts()
        return Answerer(
            Searcher(store, encoder),
            encoder,
            self._open_generator(),
            self._settings.abstain_below,
        )

    async def _parts(self) -> tuple[Store, Encoder]:
        store = await self._open_store()
        async with self._opening:
            if self._encoder is None:
                self._encoder = await self._open_encoder()
            return store, self._encoder

    async def _open_store(self) -> Store:
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


def _blocking(
    method: Callable[Concatenate[Plane, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncPlane, P], T]:
    """The blocking twin of a method of Plane, with its signature and its docstring."""

    @wraps(method)
    def call(self: SyncPlane, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(method(self.plane, *args, **kwargs))

    return call


class SyncPlane:
    """A plane whose calls block. It runs the plane's event loop in a thread of its own."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """As `Plane.aclose`; also ends the thread. Closing twice does nothing."""
        if self._loop.is_closed():
            return
        self.run(self.plane.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    ingest = _blocking(Plane.ingest)
    search = _blocking(Plane.search)
    context = _blocking(Plane.context)
    ask = _blocking(Plane.ask)
    status = _blocking(Plane.status)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the plane to its end; an interrupt cancels it.

        Raises UnavailableError once the plane is closed.
        """
        if self._loop.is_closed():
            work.close()
            raise UnavailableError("the synchronous plane is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
