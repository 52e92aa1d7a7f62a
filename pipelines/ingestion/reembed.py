"""Another model for a corpus, while it is searched: fill, compare with the ledger, switch."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.ingestion.embedding import Embedder
from pipelines.ingestion.parts import Holdings, Parts, is_dead
from ragplane.core.errors import InputError, StageError
from retrieval.stores.base import CorpusKey
from retrieval.stores.verify import Verification, verify

_LOOK_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """What a change of model came to.

    `before` and `after` are fingerprints, the same where there was nothing to do. `embedded`
    counts the chunks that this run embedded, of `chunks` in the corpus.
    """

    corpus: str
    before: str
    after: str
    chunks: int
    embedded: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """For machines; `switched` says whether the corpus changed its model now."""
        return asdict(self) | {
            "switched": self.before != self.after,
            "seconds": round(self.seconds, 2),
        }


async def reembed_corpus(parts: Parts, key: CorpusKey) -> ReembedReport:
    """Bring the corpus to the model of `parts`; the old vectors are kept until they are dropped.

    A run that was killed is taken up where it stopped. Documents that are being written are waited
    for. Raises InputError for an unknown corpus, ConfigError where vectors of a third model are
    kept, StageError where a part is down, or where the store is not as the ledger says; then the
    corpus stays with its model, and what was embedded is kept.
    """
    started = time.perf_counter()
    before = await _fingerprint(parts, key)
    encoder = await parts.open_encoder()
    embedder = await Embedder.open(encoder, parts.cache, parts.terms.patience_s)
    embedded = 0
    if embedder.fingerprint != before:
        if not await _is_written(parts, key):  # else it may only seem wrong
            _require_exact(verify(await parts.ledger.manifest(key), await parts.store.points(key)))
        await parts.store.reembedding.begin(
            key, fingerprint=embedder.fingerprint, dimensions=embedder.dimensions
        )
        embedded = await _fill_and_switch(parts, key, embedder)
    status = await parts.store.status(key)
    return ReembedReport(
        corpus=key.corpus,
        before=before,
        after=embedder.fingerprint,
        chunks=status.chunks if status else 0,
        embedded=embedded,
        seconds=time.perf_counter() - started,
    )


async def drop_unused(holdings: Holdings, key: CorpusKey) -> str | None:
    """Remove the vectors of the model before, or of a change that was not finished.

    The fingerprint of their model, None if there were none. Raises InputError for an unknown
    corpus.
    """
    await _fingerprint(holdings, key)
    return await holdings.store.reembedding.drop_unused(key)


async def _fingerprint(holdings: Holdings, key: CorpusKey) -> str:
    found = await holdings.store.fingerprint(key)
    if found is None:
        raise InputError(f"corpus {key.corpus!r} does not exist for tenant {key.tenant!r}")
    return found


async def _fill_and_switch(parts: Parts, key: CorpusKey, embedder: Embedder) -> int:
    """How many chunks were embedded, those that were written meanwhile among them."""
    vectors, fingerprint = parts.store.reembedding, embedder.fingerprint
    embedded = await vectors.fill(key, fingerprint, embedder.embed)
    end_s = time.monotonic() + parts.terms.patience_s
    while True:
        written = await _is_written(parts, key)
        embedded += await vectors.fill(key, fingerprint, embedder.embed)
        manifest = await parts.ledger.manifest(key)
        found = verify(manifest, await vectors.points(key, fingerprint))
        if not written and not await _is_written(parts, key):
            _require_exact(found)
            if await vectors.switch(key, fingerprint):
                return embedded
        if time.monotonic() > end_s:
            raise StageError("store", "its documents are being written, so it was not switched")
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _is_written(parts: Parts, key: CorpusKey) -> bool:
    """Whether a worker that lives holds documents of the corpus."""
    return not all(is_dead(holder) for holder in await parts.ledger.holders(key))


def _require_exact(found: Verification) -> None:
    if not found.exact:
        wrong = len(found.missing) + len(found.orphan) + len(found.stale) + len(found.duplicate)
        cause = f"{wrong} points are not as the ledger says: run `ragplane verify --repair` first"
        raise StageError("store", cause)
