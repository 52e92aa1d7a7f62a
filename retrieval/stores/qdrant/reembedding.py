"""Another model for a corpus in Qdrant: the steps of `generations` behind the store's seam.

The corpus changes its model for all its tenants. Qdrant has no transactions, so what is written
while the alias is switched may be missing afterwards: `verify --repair` finds and mends it.
"""

from __future__ import annotations

from uuid import UUID

from retrieval.stores.base import CorpusKey, Embed, PointFact
from retrieval.stores.checks import check_change
from retrieval.stores.qdrant import generations, names, points
from retrieval.stores.qdrant.engine import Engine, Where
from retrieval.stores.qdrant.points import Corpus


class QdrantReembedding:
    """Implements `Reembedding`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def begin(self, key: CorpusKey, *, fingerprint: str, dimensions: int) -> None:
        """As `Reembedding.begin`."""
        used, second = await self._used(key), await self._second(key)
        check_change(
            key.corpus,
            made_with=used.fingerprint if used else None,
            second=second.fingerprint if second else None,
            fingerprint=fingerprint,
        )
        if second is None:
            await generations.drop_unused(self._engine, key.corpus)  # one that was just begun
            second = await generations.create_generation(
                self._engine, key.corpus, fingerprint, dimensions
            )
            await self._engine.upsert(second.collection, [points.corpus_point(key, second)])

    async def fill(self, key: CorpusKey, fingerprint: str, embed: Embed) -> int:
        """As `Reembedding.fill`."""
        target = await self._of(key, fingerprint)
        return await generations.fill(self._engine, key.corpus, target, embed) if target else 0

    async def points(self, key: CorpusKey, fingerprint: str) -> dict[UUID, PointFact]:
        """As `Reembedding.points`."""
        target = await self._of(key, fingerprint)
        if target is None:
            return {}
        where = Where({"kind": "chunk", "tenant": key.tenant})
        return await generations.facts(self._engine, target.collection, where)

    async def switch(self, key: CorpusKey, fingerprint: str) -> bool:
        """As `Reembedding.switch`."""
        target = await self._of(key, fingerprint)
        if target is None:
            used = await self._used(key)
            return used is not None and used.fingerprint == fingerprint
        compared = await generations.compare(self._engine, key.corpus, target.collection)
        if compared.exact:
            await generations.switch_alias(self._engine, key.corpus, target.collection)
        return compared.exact

    async def drop_unused(self, key: CorpusKey) -> str | None:
        """As `Reembedding.drop_unused`."""
        if await self._used(key) is None:
            return None
        second = await self._second(key)
        await generations.drop_unused(self._engine, key.corpus)
        return second.fingerprint if second else None

    async def _of(self, key: CorpusKey, fingerprint: str) -> Corpus | None:
        second = await self._second(key)
        return second if second and second.fingerprint == fingerprint else None

    async def _used(self, key: CorpusKey) -> Corpus | None:
        found = await self._engine.retrieve(names.slug(key.corpus), [points.corpus_point_id(key)])
        return points.corpus_from(found[0]) if found else None

    async def _second(self, key: CorpusKey) -> Corpus | None:
        if await self._used(key) is None:
            return None
        any_tenants = Where({"kind": "corpus", "corpus": key.corpus})
        for collection in await generations.unused(self._engine, key.corpus):
            async for page in self._engine.scroll(collection, any_tenants):
                for record in page:
                    return points.corpus_from(record)
        return None
