"""Blue-green re-embedding: a second collection of the corpus is filled beside the one in use.

The steps are `create_generation`, `fill`, `compare`, `switch_alias` and, after a grace time,
`drop_unused`. `fill` may run again at any time: it embeds what is new or changed, and removes what
is gone. Between the last `fill` and `switch_alias` nothing may write to the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ragplane.core.errors import ConfigError
from ragplane.core.schema import Chunk
from retrieval.stores.base import Embed, PointFact
from retrieval.stores.checks import check_dimensions, unit_rows
from retrieval.stores.qdrant import names, points
from retrieval.stores.qdrant.engine import EVERYTHING, Engine, Point, Record, Where
from retrieval.stores.verify import Verification, verify


async def create_generation(
    engine: Engine, corpus: str, fingerprint: str, dimensions: int
) -> points.Corpus:
    """Make an empty collection for this model, one version after all that the corpus has."""
    check_dimensions(dimensions)
    name = names.next_name(await engine.collections(), corpus, fingerprint, dimensions)
    await engine.create(str(name), dimensions)
    return points.Corpus(str(name), fingerprint, dimensions)


async def fill(engine: Engine, corpus: str, target: points.Corpus, embed: Embed) -> int:
    """Bring the target to the state of the collection in use; how many chunks were embedded."""
    embedded = 0
    source = await in_use(engine, corpus)
    async for page in engine.scroll(source, EVERYTHING):
        changed = await _changed(engine, target, page)
        vectors = await _embed(changed, target, embed)
        await engine.upsert(
            target.collection,
            [
                _copy(record, target, vector)
                for record, vector in zip(changed, vectors, strict=True)
            ],
        )
        embedded += sum(vector is not None for vector in vectors)
    async for page in engine.scroll(target.collection, EVERYTHING, ["kind"]):
        ids = [record.id for record in page]
        kept = {record.id for record in await engine.retrieve(source, ids)} if ids else set()
        if gone := [id_ for id_ in ids if id_ not in kept]:
            await engine.delete(target.collection, Where({}, ids=gone))
    return embedded


async def compare(engine: Engine, corpus: str, collection: str) -> Verification:
    """How this collection's chunks differ from those of the collection in use."""
    chunks = Where({"kind": "chunk"})
    expected = await facts(engine, await in_use(engine, corpus), chunks)
    return verify(expected, await facts(engine, collection, chunks))


async def switch_alias(engine: Engine, corpus: str, collection: str) -> str:
    """Let the corpus be this collection from now on, atomically; the one it was.

    Raises ConfigError where the collection is not one of the corpus's.
    """
    known = {str(name) for name in names.of_corpus(await engine.collections(), corpus)}
    if collection not in known:
        raise ConfigError(f"corpus {corpus!r} has no collection {collection}")
    before = await in_use(engine, corpus)
    await engine.switch_alias(names.slug(corpus), collection)
    return before


async def unused(engine: Engine, corpus: str) -> list[str]:
    """The corpus's collections beside the one in use, oldest first."""
    used = await in_use(engine, corpus)
    known = names.of_corpus(await engine.collections(), corpus)
    return [str(name) for name in known if str(name) != used]


async def drop_unused(engine: Engine, corpus: str) -> list[str]:
    """Remove the corpus's collections beside the one in use; their names."""
    dropped = await unused(engine, corpus)
    for name in dropped:
        await engine.drop(name)
    return dropped


async def in_use(engine: Engine, corpus: str) -> str:
    """The collection that the corpus is. Raises ConfigError where there is no such corpus."""
    collection = (await engine.aliases()).get(names.slug(corpus))
    if collection is None:
        raise ConfigError(f"there is no corpus {corpus!r}")
    return collection


async def _changed(engine: Engine, target: points.Corpus, page: Sequence[Record]) -> list[Record]:
    ids = [record.id for record in page]
    found = await engine.retrieve(target.collection, ids) if ids else []
    there = {record.id: record.payload for record in found}
    return [record for record in page if there.get(record.id) != record.payload]


async def _embed(
    records: Sequence[Record], target: points.Corpus, embed: Embed
) -> list[list[float] | None]:
    """The unit vector of each chunk, and None for every other record."""
    chunks = [_newest(record) for record in records if record.payload["kind"] == "chunk"]
    if not chunks:
        return [None] * len(records)
    units = unit_rows(None, await embed(chunks), (len(chunks), target.dimensions))
    by_id = {chunk.id: unit.tolist() for chunk, unit in zip(chunks, units, strict=True)}
    return [by_id.get(record.id) for record in records]


def _newest(record: Record) -> Chunk:
    return points.chunk_from(record, record.payload["versions"][-1]["id"])


def _copy(record: Record, target: points.Corpus, vector: list[float] | None) -> Point:
    if record.payload["kind"] == "corpus":
        return Point(record.id, record.payload | target._asdict())
    if vector is None:
        return Point(record.id, record.payload)
    sparse = points.sparse_of(points.newest_text(record.payload))
    return Point(record.id, record.payload, vector, sparse)


async def facts(engine: Engine, collection: str, where: Where) -> dict[UUID, PointFact]:
    """Every chunk of `where` in the collection by its id, for verification."""
    return {
        record.id: points.fact_from(record)
        async for page in engine.scroll(collection, where, points.FACT_FIELDS)
        for record in page
    }
