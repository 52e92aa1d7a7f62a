"""Hybrid search: dense and lexical legs, fused, reranked, merged where texts are identical."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from ragplane.core.errors import (
    ConfigError,
    InputError,
    ModelError,
    OverloadedError,
    UnavailableError,
    describe,
)
from ragplane.core.schema import Chunk, Document, Hit, SearchResult
from ragplane.core.telemetry import tracer
from retrieval.fusion import fuse
from retrieval.stores.base import CorpusKey, Scored, Store
from serve.encoder import Encoder

MAX_K = 200
_LEG_LIMIT = 50
_RERANK_LIMIT = 24
_RERANK_TIMEOUT_S = 20.0
_WEIGHTS: Mapping[str, float] = {"dense": 1.0, "lexical": 0.5}


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A search result with the encoder tokens it cost."""

    result: SearchResult
    encoder_tokens: int


class Stopwatch:
    """Times of named stages, in milliseconds."""

    def __init__(self) -> None:
        self.timings_ms: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage and record it as a span."""
        started = time.perf_counter()
        with tracer.start_as_current_span(f"retrieval.{name}"):
            try:
                yield
            finally:
                elapsed_ms = (time.perf_counter() - started) * 1000
                self.timings_ms[name] = round(self.timings_ms.get(name, 0.0) + elapsed_ms, 2)


class Searcher:
    """Searches the corpora of one store with one encoder."""

    def __init__(self, store: Store, encoder: Encoder) -> None:
        self._store = store
        self._encoder = encoder

    async def search(self, query: str, key: CorpusKey, k: int) -> Retrieved:
        """The best `k` chunks for `query`.

        Raises InputError for an empty query, a k out of 1 to 200 or an unknown corpus, and
        ConfigError for a corpus that was embedded by another model. A reranker that is down or
        late is skipped and reported.
        """
        _require_query(query, k)
        watch = Stopwatch()
        with watch.stage("total"):
            await self._require_fingerprint(key)
            with watch.stage("embed"):
                embedded = await self._encoder.embed([query], input_type="query")
            with watch.stage("legs"):
                dense, lexical = await asyncio.gather(
                    self._store.dense(key, embedded.vectors[0], max(_LEG_LIMIT, 2 * k)),
                    self._store.lexical(key, query, max(_LEG_LIMIT, 2 * k)),
                )
            legs = {"dense": dense, "lexical": lexical}
            ranked = fuse(
                {leg: [s.chunk_id for s in found] for leg, found in legs.items()}, _WEIGHTS
            )
            pool = ranked[: max(_RERANK_LIMIT, k)]
            with watch.stage("fetch"):
                rows = await self._store.chunks(key, [chunk_id for chunk_id, _ in pool])
            hits = merge_identical(_hits(pool, legs, rows))
            with watch.stage("rerank"):
                hits, tokens, degradations = await self._rerank(query, hits)
        result = SearchResult(query, tuple(hits[:k]), watch.timings_ms, degradations)
        return Retrieved(result, embedded.tokens + tokens)

    async def _require_fingerprint(self, key: CorpusKey) -> None:
        known = await self._store.fingerprint(key)
        if known is None:
            raise InputError(f"corpus {key.corpus!r} does not exist for tenant {key.tenant!r}")
        current = await self._encoder.fingerprint()
        if known != current:
            raise ConfigError(
                f"corpus {key.corpus!r} was embedded by model {known}, this is model {current}: "
                "vectors of two models cannot be compared"
            )

    async def _rerank(
        self, query: str, hits: Sequence[Hit]
    ) -> tuple[list[Hit], int, tuple[str, ...]]:
        if not hits:
            return [], 0, ()
        texts = [hit.chunk.embedded_text for hit in hits]
        try:
            async with asyncio.timeout(_RERANK_TIMEOUT_S):
                reranked = await self._encoder.rerank(query, texts)
        except TimeoutError:
            return list(hits), 0, ("rerank: skipped (timeout)",)
        except (UnavailableError, OverloadedError, ModelError) as error:
            return list(hits), 0, (f"rerank: skipped ({describe(error)})",)
        scored = [
            replace(hit, score=score, scores={**hit.scores, "rerank": score})
            for hit, score in zip(hits, reranked.scores, strict=True)
        ]
        return _ranked(scored), reranked.tokens, ()


def merge_identical(hits: Sequence[Hit]) -> list[Hit]:
    """One hit for each distinct text (with its prefix: the same row in two price lists says two
    things), the best one, naming the other documents that carry it."""
    best: dict[str, Hit] = {}
    for hit in hits:
        first = best.setdefault(hit.chunk.sha256, hit)
        if first is not hit:
            sources = sorted({*first.duplicates, hit.document.source} - {first.document.source})
            best[hit.chunk.sha256] = replace(first, duplicates=tuple(sources))
    return _ranked(list(best.values()))


def _require_query(query: str, k: int) -> None:
    if not query.strip():
        raise InputError("the query is empty", param="query")
    if not 1 <= k <= MAX_K:
        raise InputError(f"k is {k}, but must be from 1 to {MAX_K}", param="k")


def _hits(
    pool: Sequence[tuple[UUID, float]],
    legs: Mapping[str, Sequence[Scored]],
    rows: Mapping[UUID, tuple[Chunk, Document]],
) -> list[Hit]:
    by_leg = {leg: {s.chunk_id: s.score for s in found} for leg, found in legs.items()}
    hits = []
    for chunk_id, fused in pool:
        if chunk_id not in rows:  # deleted between the legs and the fetch
            continue
        scores = {leg: found[chunk_id] for leg, found in by_leg.items() if chunk_id in found}
        chunk, document = rows[chunk_id]
        hits.append(Hit(chunk, document, {**scores, "fused": fused}, 0, fused))
    return _ranked(hits)


def _ranked(hits: Sequence[Hit]) -> list[Hit]:
    ordered = sorted(hits, key=lambda hit: (-hit.score, hit.chunk.id))
    return [replace(hit, rank=rank) for rank, hit in enumerate(ordered, start=1)]
