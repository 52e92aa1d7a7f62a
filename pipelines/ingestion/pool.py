"""Parser processes that work claims off: while one document is embedded, the next is parsed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from ingest.ledger.records import Claim, LeaseLostError
from ingest.options import ParserSpec
from ingest.parsed import ParseResult
from ingest.workers import ParserProcess
from pipelines.ingestion.documents import Documents
from pipelines.ingestion.embedding import Embedder
from pipelines.ingestion.patience import PartDownError
from ragplane.core.errors import ModelError, RagplaneError, StageError, describe
from retrieval.stores.base import CorpusKey

# Documents for each parser that are parsed and wait for their vectors: enough to keep the
# encoder's batches full.
_WAITING_PER_PARSER = 4

NextClaim = Callable[[], Awaitable[Claim | None]]
EmbedderOf = Callable[[CorpusKey], Awaitable[Embedder]]


class Outcomes(Protocol):
    """Told what became of each document."""

    def read(self, claim: Claim, result: ParseResult) -> None:
        """It is in the store."""
        ...

    def deleted(self, claim: Claim) -> None:
        """It is gone from the store."""
        ...

    def failed(self, claim: Claim, error: StageError) -> None:
        """It could not be read; the others can."""
        ...

    def lost(self, claim: Claim) -> None:
        """It changed, or another worker has it: whoever claims it next does the work."""
        ...

    def stop(self, error: StageError) -> None:
        """A part that every document needs is down."""
        ...


class Pool:
    """Works until there is no claim, or until a part that every document needs stays down."""

    def __init__(
        self,
        documents: Documents,
        embedder_of: EmbedderOf,
        spec: ParserSpec,
        workers: int,
        outcomes: Outcomes,
    ) -> None:
        self._documents = documents
        self._embedder_of = embedder_of
        self._spec = spec
        self._workers = workers
        self._outcomes = outcomes
        self._room = asyncio.Semaphore(workers * _WAITING_PER_PARSER)
        self.stopped = False

    async def run(self, next_claim: NextClaim) -> None:
        """Work off what `next_claim` gives; None ends the parser that asked."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._workers):
                tasks.create_task(self._work(next_claim, tasks))

    async def _work(self, next_claim: NextClaim, tasks: asyncio.TaskGroup) -> None:
        parser = ParserProcess(self._spec)
        try:
            while True:
                await self._room.acquire()
                claim = None if self.stopped else await next_claim()
                if claim is None:
                    self._room.release()
                    return
                parsed = asyncio.Event()
                tasks.create_task(self._document(claim, parser, parsed))
                await parsed.wait()
        except RagplaneError as error:  # the ledger is down
            self._stop(_named(error))
        finally:
            parser.close()

    async def _document(self, claim: Claim, parser: ParserProcess, parsed: asyncio.Event) -> None:
        try:
            async with self._documents.held(claim):
                await self._steps(claim, parser, parsed)
        except LeaseLostError:
            self._outcomes.lost(claim)
        except PartDownError as error:
            self._stop(error)
            await self._documents.release(claim)
        except StageError as error:
            await self._fail(claim, error)
        except RagplaneError as error:
            self._stop(_named(error))
            await self._documents.release(claim)
        except asyncio.CancelledError:
            await self._documents.release(claim)
            raise
        finally:
            parsed.set()
            self._room.release()

    async def _steps(self, claim: Claim, parser: ParserProcess, parsed: asyncio.Event) -> None:
        if claim.tombstone:
            parsed.set()
            await self._documents.delete(claim)
            self._outcomes.deleted(claim)
            return
        has_vision = self._spec.options.vlm is not None
        spent = await self._documents.vision_tokens(claim.key.tenant) if has_vision else 0
        result = await self._documents.parse(claim, parser, spent)
        parsed.set()
        embedder = await self._embedder_of(claim.key)
        await self._documents.write(claim, result, embedder)
        self._outcomes.read(claim, result)

    async def _fail(self, claim: Claim, error: StageError) -> None:
        try:
            await self._documents.fail(claim, error)
        except LeaseLostError:
            self._outcomes.lost(claim)
        except RagplaneError as down:
            self._stop(_named(down))
        else:
            self._outcomes.failed(claim, error)

    def _stop(self, error: StageError) -> None:
        self.stopped = True
        self._outcomes.stop(error)


def _named(error: RagplaneError) -> StageError:
    """The error at its stage: a model is the encoder's, everything else the store's."""
    if isinstance(error, StageError):
        return error
    return StageError("embed" if isinstance(error, ModelError) else "store", describe(error))
