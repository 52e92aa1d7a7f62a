"""The engine on a server, through qdrant-client's asynchronous HTTP client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import orjson
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from ragplane.core.errors import ConfigError, UnavailableError, describe
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
    RefusedError,
    Sparse,
    Where,
    ef_search,
)

# The first release that counts the IDF over the points of a filter, here over a tenant's.
_LEAST_VERSION = (1, 19)
_TIMEOUT_S = 30

_INDEX_PARAMETERS: dict[IndexKind, Any] = {
    "tenant": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "keyword": models.PayloadSchemaType.KEYWORD,
    "integer": models.PayloadSchemaType.INTEGER,
}


class ServerEngine:
    """Implements `Engine` over a client. Made by `open`; `aclose` ends it."""

    def __init__(self, client: AsyncQdrantClient, where: str) -> None:
        """`where` names the server in errors."""
        self._client = client
        self._where = where

    @classmethod
    async def open(cls, url: str, api_key: str | None) -> ServerEngine:
        """Connect to the server at `url` (http or https), and check that it is recent enough."""
        client = AsyncQdrantClient(
            url=url,
            # Not as `api_key`, which warns of http, the usual thing inside a private network.
            headers={"api-key": api_key} if api_key else None,
            timeout=_TIMEOUT_S,
            check_compatibility=False,
        )
        engine = cls(client, url.split("://", 1)[-1].rstrip("/"))
        try:
            await engine._check_version()
        except BaseException:
            await engine.aclose()
            raise
        return engine

    async def create(self, collection: str, dimensions: int) -> None:
        """As `Engine.create`."""
        with self._named("create the collection"):
            if not await self._client.collection_exists(collection):
                await self._create(collection, dimensions)
            for name, kind in INDEXES.items():
                await self._client.create_payload_index(
                    collection, name, field_schema=_INDEX_PARAMETERS[kind], wait=True
                )

    async def _create(self, collection: str, dimensions: int) -> None:
        dense = models.VectorParams(size=dimensions, distance=models.Distance.COSINE)
        try:
            await self._client.create_collection(
                collection,
                vectors_config={DENSE: dense},
                sparse_vectors_config={
                    SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)
                },
            )
        except UnexpectedResponse as error:
            if error.status_code != 409:  # another process was faster
                raise

    async def drop(self, collection: str) -> None:
        """As `Engine.drop`."""
        with self._named("drop the collection"):
            await self._client.delete_collection(collection)

    async def collections(self) -> list[str]:
        """As `Engine.collections`."""
        with self._named("list collections"):
            return [found.name for found in (await self._client.get_collections()).collections]

    async def aliases(self) -> dict[str, str]:
        """As `Engine.aliases`."""
        with self._named("list aliases"):
            found = (await self._client.get_aliases()).aliases
        return {alias.alias_name: alias.collection_name for alias in found}

    async def switch_alias(self, alias: str, collection: str) -> None:
        """As `Engine.switch_alias`."""
        removal = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
        creation = models.CreateAliasOperation(
            create_alias=models.CreateAlias(collection_name=collection, alias_name=alias)
        )
        exists = alias in await self.aliases()
        with self._named("switch the alias"):
            await self._client.update_collection_aliases(
                [removal, creation] if exists else [creation]
            )

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """As `Engine.upsert`."""
        with self._named("write points"):
            for start in range(0, len(points), BATCH_POINTS):
                batch = [_point(point) for point in points[start : start + BATCH_POINTS]]
                await self._client.upsert(collection, batch, wait=True)

    async def delete(self, collection: str, where: Where) -> None:
        """As `Engine.delete`."""
        with self._named("delete points"):
            selector = models.FilterSelector(filter=_filter(where))
            await self._client.delete(collection, selector, wait=True)

    async def retrieve(self, collection: str, ids: Sequence[UUID]) -> list[Record]:
        """As `Engine.retrieve`."""
        with self._named("read points"):
            try:
                found = await self._client.retrieve(collection, [str(id_) for id_ in ids])
            except UnexpectedResponse as error:
                if error.status_code == 404:
                    return []
                raise
        return [_record(point) for point in found]

    async def scroll(
        self, collection: str, where: Where, fields: Sequence[str] | None = None
    ) -> AsyncIterator[list[Record]]:
        """As `Engine.scroll`."""
        offset: Any = None
        while True:
            with self._named("read points"):
                page, offset = await self._client.scroll(
                    collection,
                    scroll_filter=_filter(where),
                    limit=SCROLL_POINTS,
                    offset=offset,
                    with_payload=True if fields is None else list(fields),
                )
            yield [_record(point) for point in page]
            if offset is None:
                return

    async def search(
        self, collection: str, query: list[float] | Sparse, where: Where, limit: int
    ) -> list[Record]:
        """As `Engine.search`."""
        condition = _filter(where)
        vector, using, parameters = _query(query, condition, limit)
        with self._named("search"):
            found = await self._client.query_points(
                collection,
                query=vector,
                using=using,
                query_filter=condition,
                search_params=parameters,
                limit=limit,
                with_payload=list(FOUND_FIELDS),
            )
        return [_record(point, point.score) for point in found.points]

    async def aclose(self) -> None:
        """As `Engine.aclose`."""
        await self._client.close()

    async def _check_version(self) -> None:
        with self._named("tell its version"):
            version = (await self._client.info()).version
        if tuple(int(part) for part in version.split(".")[:2]) < _LEAST_VERSION:
            least = ".".join(map(str, _LEAST_VERSION))
            raise ConfigError(f"Qdrant at {self._where} is {version}, {least} or later is needed")

    @contextmanager
    def _named(self, purpose: str) -> Iterator[None]:
        try:
            yield
        except (ApiException, QdrantException) as error:
            what = f"Qdrant at {self._where} cannot {purpose}: {_cause(error)}"
            kind = _KINDS.get(getattr(error, "status_code", None), UnavailableError)
            raise kind(what) from error


_KINDS: dict[int | None, type[ConfigError | RefusedError]] = {
    401: ConfigError,
    403: ConfigError,
    400: RefusedError,
    413: RefusedError,
    422: RefusedError,
}


def _cause(error: ApiException | QdrantException) -> str:
    if isinstance(error, UnexpectedResponse):
        try:
            return f"{error.status_code} {orjson.loads(error.content)['status']['error']}"
        except (ValueError, KeyError, TypeError):
            return f"{error.status_code} {error.reason_phrase}".rstrip()
    source = getattr(error, "source", error)
    return describe(source)


def _point(point: Point) -> models.PointStruct:
    vectors: dict[str, Any] = {}
    if point.dense is not None:
        vectors[DENSE] = point.dense
    if point.sparse is not None:
        vectors[SPARSE] = _sparse(point.sparse)
    return models.PointStruct(id=str(point.id), vector=vectors, payload=point.payload)


def _record(point: models.Record | models.ScoredPoint, score: float = 0.0) -> Record:
    return Record(UUID(str(point.id)), point.payload or {}, score)


def _sparse(vector: Sparse) -> models.SparseVector:
    return models.SparseVector(indices=vector.indices, values=vector.values)


def _query(
    query: list[float] | Sparse, where: models.Filter, limit: int
) -> tuple[Any, str, models.SearchParams]:
    if isinstance(query, Sparse):
        idf = models.IdfCorpusParams(corpus=where)
        return _sparse(query), SPARSE, models.SearchParams(idf=idf)
    return query, DENSE, models.SearchParams(hnsw_ef=ef_search(limit))


def _filter(where: Where) -> models.Filter:
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchValue(value=value))
        for key, value in where.equal.items()
    ]
    if where.ids is not None:
        must.append(models.HasIdCondition(has_id=[str(id_) for id_ in where.ids]))
    must_not: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchValue(value=value))
        for key, value in where.unequal.items()
    ]
    return models.Filter(must=must or None, must_not=must_not or None)
