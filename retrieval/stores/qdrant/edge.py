"""The engine in this process, through qdrant-edge-py.

That library knows single shards, synchronously. Added here: a folder of shards as collections, one
shard each; aliases, in a file that is replaced whole; threads, so that the event loop is not held
up. A shard has one process at a time. Its log survives a killed process.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from uuid import UUID

import orjson
import qdrant_edge as edge

from ragplane.core.errors import UnavailableError
from retrieval.stores.qdrant.engine import (
    BATCH_POINTS,
    DENSE,
    FOUND_FIELDS,
    INDEXES,
    SCROLL_POINTS,
    SPARSE,
    IndexKind,
    Point,
    Record,
    Sparse,
    Where,
    ef_search,
)

# Searches go through every vector that is not in the HNSW graph yet: of 20,000 with 384 dimensions
# in 4 ms. To index takes 1 ms a vector and holds up the whole process (the library keeps the
# interpreter's lock), so that it is left to the end.
UNINDEXED_POINTS = 50_000
# The log is shortened by a flush; a flush of so many points takes 0.1 s.
UNFLUSHED_POINTS = 8_192

_UNFINISHED = ".new"

Result = TypeVar("Result")

_INDEX_PARAMETERS: dict[IndexKind, Any] = {
    "tenant": edge.KeywordIndexParams(is_tenant=True),
    "keyword": edge.PayloadSchemaType.Keyword,
    "integer": edge.PayloadSchemaType.Integer,
}


class EdgeEngine:
    """Implements `Engine` in a folder. `aclose` ends it."""

    def __init__(self, folder: Path) -> None:
        """`folder` is made when the first collection is."""
        self._folder = folder
        self._shards: dict[str, edge.EdgeShard] = {}
        self._unflushed: Counter[str] = Counter()
        self._opening = Lock()

    async def create(self, collection: str, dimensions: int) -> None:
        """As `Engine.create`."""
        await self._run("create the collection", self._create, collection, dimensions)

    def _create(self, collection: str, dimensions: int) -> None:
        path = self._path(collection)
        if path.exists():
            return
        # A shard is made aside and moved, so that one that was half made is never opened.
        unfinished = path.with_name(path.name + _UNFINISHED)
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        shard = edge.EdgeShard.create(str(unfinished), _config(dimensions))
        for name, kind in INDEXES.items():
            shard.update(edge.UpdateOperation.create_field_index(name, _INDEX_PARAMETERS[kind]))
        shard.flush()
        shard.close()
        unfinished.rename(path)

    async def drop(self, collection: str) -> None:
        """As `Engine.drop`."""
        await self._run("drop the collection", self._drop, collection)

    def _drop(self, collection: str) -> None:
        if shard := self._shards.pop(collection, None):
            shard.close()
        shutil.rmtree(self._path(collection), ignore_errors=True)

    async def collections(self) -> list[str]:
        """As `Engine.collections`."""
        return await self._run("list collections", self._collections)

    def _collections(self) -> list[str]:
        return [path.name for path in self._folder.glob("*/") if path.suffix != _UNFINISHED]

    async def aliases(self) -> dict[str, str]:
        """As `Engine.aliases`."""
        return await self._run("list aliases", self._aliases)

    def _aliases(self) -> dict[str, str]:
        path = self._folder / "aliases.json"
        aliases: dict[str, str] = orjson.loads(path.read_bytes()) if path.exists() else {}
        return aliases

    async def switch_alias(self, alias: str, collection: str) -> None:
        """As `Engine.switch_alias`."""
        await self._run("switch the alias", self._switch_alias, alias, collection)

    def _switch_alias(self, alias: str, collection: str) -> None:
        fresh = self._folder / f"aliases.json{_UNFINISHED}"
        fresh.write_bytes(orjson.dumps(self._aliases() | {alias: collection}))
        fresh.replace(self._folder / "aliases.json")

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """As `Engine.upsert`."""
        await self._run("write points", self._upsert, collection, points)

    def _upsert(self, collection: str, points: Sequence[Point]) -> None:
        shard = self._open(collection)
        for start in range(0, len(points), BATCH_POINTS):
            batch = [_point(point) for point in points[start : start + BATCH_POINTS]]
            shard.update(edge.UpdateOperation.upsert_points(batch))
        self._unflushed[collection] += len(points)
        if self._unflushed[collection] > UNFLUSHED_POINTS:
            shard.flush()
            del self._unflushed[collection]

    async def delete(self, collection: str, where: Where) -> None:
        """As `Engine.delete`."""
        await self._run("delete points", self._delete, collection, where)

    def _delete(self, collection: str, where: Where) -> None:
        operation = edge.UpdateOperation.delete_points_by_filter(_filter(where))
        self._open(collection).update(operation)

    async def retrieve(self, collection: str, ids: Sequence[UUID]) -> list[Record]:
        """As `Engine.retrieve`."""
        return await self._run("read points", self._retrieve, collection, ids)

    def _retrieve(self, collection: str, ids: Sequence[UUID]) -> list[Record]:
        if not self._path(collection).exists():
            return []
        found = self._open(collection).retrieve(list(ids), True, False)
        return [Record(_id(point), point.payload or {}) for point in found]

    async def scroll(
        self, collection: str, where: Where, fields: Sequence[str] | None = None
    ) -> AsyncIterator[list[Record]]:
        """As `Engine.scroll`."""
        offset: Any = None
        while True:
            request = edge.ScrollRequest(
                offset=offset,
                limit=SCROLL_POINTS,
                filter=_filter(where),
                with_payload=True if fields is None else list(fields),
            )
            page, offset = await self._run("read points", self._scroll, collection, request)
            yield [Record(_id(point), point.payload or {}) for point in page]
            if offset is None:
                return

    def _scroll(self, collection: str, request: edge.ScrollRequest) -> tuple[list[Any], Any]:
        return self._open(collection).scroll(request)

    async def search(
        self, collection: str, query: list[float] | Sparse, where: Where, limit: int
    ) -> list[Record]:
        """As `Engine.search`."""
        request = _search_request(query, _filter(where), limit)
        return await self._run("search", self._search, collection, request)

    def _search(self, collection: str, request: edge.QueryRequest) -> list[Record]:
        found = self._open(collection).query(request)
        return [Record(_id(point), point.payload or {}, point.score) for point in found]

    async def aclose(self) -> None:
        """As `Engine.aclose`."""
        await self._run("close", self._close)

    def _close(self) -> None:
        while self._shards:
            _, shard = self._shards.popitem()
            info = shard.info()
            if info.points_count - info.indexed_vectors_count > UNINDEXED_POINTS:
                shard.optimize()
            shard.flush()
            shard.close()

    def _open(self, collection: str) -> edge.EdgeShard:
        """The shard of this collection or alias."""
        with self._opening:
            name = self._path(collection).name
            if name not in self._shards:
                self._shards[name] = edge.EdgeShard.load(str(self._folder / name))
            return self._shards[name]

    def _path(self, collection: str) -> Path:
        return self._folder / self._aliases().get(collection, collection)

    async def _run(self, purpose: str, work: Callable[..., Result], *arguments: Any) -> Result:
        with self._named(purpose):
            return await asyncio.to_thread(work, *arguments)

    @contextmanager
    def _named(self, purpose: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            # The library raises bare Exceptions; anything else than these and the file system's
            # is a mistake of ours.
            if type(error) is not Exception and not isinstance(error, OSError):
                raise
            where = f"Qdrant in {self._folder} cannot {purpose}"
            raise UnavailableError(f"{where}: {error}") from error


def _config(dimensions: int) -> edge.EdgeConfig:
    dense = edge.EdgeVectorParams(size=dimensions, distance=edge.Distance.Cosine)
    sparse = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
    return edge.EdgeConfig(vectors={DENSE: dense}, sparse_vectors={SPARSE: sparse})


def _id(point: edge.Record | edge.ScoredPoint) -> UUID:
    return UUID(str(point.id))


def _point(point: Point) -> edge.Point:
    vectors: dict[str, Any] = {}
    if point.dense is not None:
        vectors[DENSE] = point.dense
    if point.sparse is not None:
        vectors[SPARSE] = edge.SparseVector(point.sparse.indices, point.sparse.values)
    return edge.Point(point.id, vectors, point.payload)


def _search_request(
    query: list[float] | Sparse, where: edge.Filter, limit: int
) -> edge.QueryRequest:
    if isinstance(query, Sparse):
        vector: Any = edge.SparseVector(query.indices, query.values)
        using, parameters = SPARSE, edge.SearchParams(idf=edge.IdfParams(corpus=where))
    else:
        vector = query
        using, parameters = DENSE, edge.SearchParams(hnsw_ef=ef_search(limit))
    return edge.QueryRequest(
        limit=limit,
        query=edge.Query.Nearest(vector, using),
        filter=where,
        params=parameters,
        with_payload=list(FOUND_FIELDS),
    )


def _filter(where: Where) -> edge.Filter:
    must: list[Any] = [
        edge.FieldCondition(key, edge.MatchValue(value)) for key, value in where.equal.items()
    ]
    if where.ids is not None:
        must.append(edge.HasIdCondition(set(where.ids)))
    must_not: list[Any] = [
        edge.FieldCondition(key, edge.MatchValue(value)) for key, value in where.unequal.items()
    ]
    return edge.Filter(must=must, must_not=must_not)
