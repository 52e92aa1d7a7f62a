"""The steps of replacing and deleting a document.

A version of a document is written beside the current one, then becomes the current one by the
write of the document's point, then what belongs to other versions is deleted. A process that is
killed in between leaves points that no reader sees and the next write removes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ragplane.core.errors import StageError
from ragplane.core.schema import Chunk, Document, Page
from retrieval.stores.base import Fence
from retrieval.stores.qdrant import points
from retrieval.stores.qdrant.engine import Engine, Payload, Point, Record, RefusedError, Where


async def replace_document(
    engine: Engine,
    collection: str,
    document: Document,
    pages: Sequence[Page],
    chunks: Sequence[Chunk],
    units: NDArray[np.float32],
    fence: Fence | None,
) -> None:
    """Put the document in place of any earlier version, all or nothing.

    `units` is float32 [len(chunks), dimensions] of unit vectors. Raises StageError at `store` where
    an id is taken, or where the engine refuses the content, and as `fence`: it is checked right
    before the new version is written, and again before it becomes the current one.
    """
    namesakes = await _namesakes(engine, collection, document.tenant, document.id, document.source)
    earlier = await _earlier(engine, collection, document, chunks, namesakes)
    version = points.version_of(document, pages, chunks)
    batch = await asyncio.to_thread(
        _version_points, document, version, pages, chunks, units, earlier
    )
    if fence is not None:
        await fence.check()
    try:
        await engine.upsert(collection, batch)
        if fence is not None:
            await fence.check()
        flip = points.document_point(document, version, pages, chunks)
        await engine.upsert(collection, [flip])
    except RefusedError as error:
        raise StageError("store", error.cause, document=document.source) from error
    parts = {"tenant": document.tenant, "document_id": str(document.id)}
    for kind in ("chunk", "text"):
        others = Where(parts | {"kind": kind}, {"versions[].id": version})
        await engine.delete(collection, others)
    for namesake in namesakes:
        await delete_document(engine, collection, document.tenant, namesake)


async def delete_document(engine: Engine, collection: str, tenant: str, document_id: UUID) -> None:
    """Remove the tenant's document: its point, which hides the rest at once, then the rest."""
    await engine.delete(
        collection, Where({"tenant": tenant, "kind": "document"}, ids=[document_id])
    )
    await engine.delete(collection, Where({"tenant": tenant, "document_id": str(document_id)}))


async def move_document(
    engine: Engine, collection: str, tenant: str, document_id: UUID, source: str
) -> None:
    """Give the tenant's document another source, in place of a document that is there."""
    for record in await _retrieve(engine, collection, tenant, "document", [document_id]):
        await engine.upsert(collection, [Point(record.id, record.payload | {"source": source})])
        for namesake in await _namesakes(engine, collection, tenant, document_id, source):
            await delete_document(engine, collection, tenant, namesake)


async def delete_chunks(engine: Engine, collection: str, tenant: str, ids: Sequence[UUID]) -> None:
    """Remove the tenant's chunks with these ids, and count them out of their documents."""
    gone = await _retrieve(engine, collection, tenant, "chunk", ids)
    await engine.delete(collection, Where({"tenant": tenant, "kind": "chunk"}, ids=ids))
    by_document: dict[UUID, list[Record]] = {}
    for record in gone:
        by_document.setdefault(UUID(record.payload["document_id"]), []).append(record)
    owners = await _retrieve(engine, collection, tenant, "document", list(by_document))
    await engine.upsert(
        collection, [points.without_chunks(owner, by_document[owner.id]) for owner in owners]
    )


async def _retrieve(
    engine: Engine, collection: str, tenant: str, kind: str, ids: Sequence[UUID]
) -> list[Record]:
    found = await engine.retrieve(collection, ids) if ids else []
    scope = (tenant, kind)
    return [r for r in found if (r.payload["tenant"], r.payload["kind"]) == scope]


async def _namesakes(
    engine: Engine, collection: str, tenant: str, document_id: UUID, source: str
) -> list[UUID]:
    """The tenant's other documents of this source."""
    where = Where({"tenant": tenant, "kind": "document", "source": source})
    return [
        record.id
        async for page in engine.scroll(collection, where, ["kind"])
        for record in page
        if record.id != document_id
    ]


async def _earlier(
    engine: Engine,
    collection: str,
    document: Document,
    chunks: Sequence[Chunk],
    namesakes: Sequence[UUID],
) -> dict[UUID, list[Payload]]:
    """What the points of these chunks say of the current version of the document."""
    found = await engine.retrieve(collection, [document.id, *(chunk.id for chunk in chunks)])
    records = {record.id: record for record in found}
    own = records.pop(document.id, None)
    if own and (own.payload["kind"], own.payload["tenant"]) != ("document", document.tenant):
        raise StageError("store", "its id is taken", document=document.source)
    allowed = {str(id_) for id_ in (document.id, *namesakes)}
    if any(not _belongs(record, document, allowed) for record in records.values()):
        raise StageError("store", "a chunk's id is taken", document=document.source)
    version = own.payload["version"] if own else None
    return {
        id_: [facts for facts in record.payload["versions"] if facts["id"] == version]
        for id_, record in records.items()
    }


def _belongs(record: Record, document: Document, allowed: set[str]) -> bool:
    payload = record.payload
    return (
        payload["kind"] == "chunk"
        and payload["tenant"] == document.tenant
        and payload["document_id"] in allowed
    )


def _version_points(
    document: Document,
    version: str,
    pages: Sequence[Page],
    chunks: Sequence[Chunk],
    units: NDArray[np.float32],
    earlier: dict[UUID, list[Payload]],
) -> list[Point]:
    written = points.text_points(document, version, pages)
    for chunk, unit in zip(chunks, units, strict=True):
        kept = [facts for facts in earlier.get(chunk.id, []) if facts["id"] != version]
        written.append(points.chunk_point(document, version, chunk, unit, kept))
    return written
