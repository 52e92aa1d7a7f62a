"""One claimed document, from the file to the store: free of who claimed it and where."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from ingest.ledger.base import Ledger
from ingest.ledger.records import Claim
from ingest.parsed import ParseRequest, ParseResult, RawPage
from ingest.workers import ParserProcess
from pipelines.ingestion.embedding import Embedder
from pipelines.ingestion.patience import patiently
from ragplane.core.errors import RagplaneError, StageError
from retrieval.stores.base import Store


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a claim holds without renewal, and how long a part that is down is waited for."""

    lease_s: float = 60.0
    patience_s: float = 120.0


class Documents:
    """The steps of one document. Every step may run twice: ids depend on content and place."""

    def __init__(self, ledger: Ledger, store: Store, terms: Terms) -> None:
        self._ledger = ledger
        self._store = store
        self._terms = terms

    async def parse(self, claim: Claim, parser: ParserProcess, vlm_tokens: int) -> ParseResult:
        """Read the claim's file or object; pages that an earlier claim finished are not read again.

        `vlm_tokens` is what the tenant has spent. Raises StageError; LeaseLostError among them.
        """
        checkpoints = _Checkpoints(self._ledger, claim, self._terms.patience_s)
        async with parser.file_of(claim.source) as path:
            request = ParseRequest(
                path=path,
                source=claim.source,
                tenant=claim.key.tenant,
                corpus=claim.key.corpus,
                document_id=claim.document_id,
                generation=claim.generation,
                vlm_tokens_spent=vlm_tokens,
            )
            result = await parser.parse(request, checkpoints)
        await self._patiently_store(lambda: self._ledger.finish_parsing(claim, result))
        return result

    async def vision_tokens(self, tenant: str) -> int:
        """What the tenant has spent on vision models on this UTC day, in every run and worker."""
        return await patiently(
            lambda: self._ledger.vision_tokens(tenant), "store", self._terms.patience_s
        )

    async def write(self, claim: Claim, result: ParseResult, embedder: Embedder) -> None:
        """Embed and store what was read, then tell the ledger. Raises as `parse`."""
        vectors = await embedder.embed(result.chunks)

        async def replace() -> None:
            await self._ledger.renew(claim, self._terms.lease_s)
            await self._store.replace_document(
                result.document,
                result.pages,
                result.chunks,
                vectors,
                fingerprint=embedder.fingerprint,
                fence=self._ledger.fence(claim),
            )

        await self._patiently_store(replace)
        await self._patiently_store(lambda: self._ledger.finish_document(claim, result))

    async def delete(self, claim: Claim) -> None:
        """Carry a tombstone out: the points, then the row."""

        async def delete() -> None:
            await self._ledger.renew(claim, self._terms.lease_s)
            fence = self._ledger.fence(claim)
            await self._store.delete_document(claim.key, claim.document_id, fence=fence)
            await self._ledger.finish_deletion(claim)

        await self._patiently_store(delete)

    async def fail(self, claim: Claim, error: StageError) -> None:
        """Tell the ledger that the document failed; it is tried again by the next run."""
        await self._patiently_store(lambda: self._ledger.fail(claim, error))

    async def release(self, claim: Claim) -> None:
        """Give the document back, if the ledger can be told."""
        with suppress(RagplaneError):
            await self._ledger.release(claim)

    @asynccontextmanager
    async def held(self, claim: Claim) -> AsyncIterator[None]:
        """Renew the lease for as long as the block runs. One that is lost shows at a commit."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._terms.lease_s / 3)
                with suppress(RagplaneError):
                    await self._ledger.renew(claim, self._terms.lease_s)

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            renewing.cancel()

    async def _patiently_store(self, work: Callable[[], Awaitable[None]]) -> None:
        await patiently(work, "store", self._terms.patience_s)


@dataclass(frozen=True, slots=True)
class _Checkpoints:
    """Pages of one claim in the ledger."""

    ledger: Ledger
    claim: Claim
    patience_s: float

    async def finished(self, sha256: str) -> Mapping[int, RawPage]:
        """See Checkpoints."""
        return await patiently(
            lambda: self.ledger.finished_pages(self.claim, sha256), "store", self.patience_s
        )

    async def keep(self, sha256: str, pages: Sequence[RawPage]) -> None:
        """See Checkpoints."""
        await patiently(
            lambda: self.ledger.finish_pages(self.claim, sha256, pages), "store", self.patience_s
        )
