"""Reading whole documents: of each, exactly one version, whatever is being written meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from ragplane.core.errors import UnavailableError
from retrieval.stores.qdrant.engine import Engine, Payload, Record
from retrieval.stores.qdrant.points import has_version, text_point_ids

# Only a document that is replaced again and again, faster than it is searched, needs more.
_MOST_TRIES = 8


class Current(NamedTuple):
    """A chunk's point, and the payload of its document's point."""

    record: Record
    document: Payload


async def current(
    engine: Engine,
    collection: str,
    ask: Callable[[int], Awaitable[list[Record]]],
    limit: int,
) -> list[Current]:
    """The `limit` first chunks of `ask` that belong to the current version of their document.

    `ask(n)` gives the n first, among them chunks of versions that are being written or removed.
    It is asked again while such chunks leave too few, or while a document changed versions between
    its chunks and its own point being read.
    """
    known: dict[str, str | None] = {}
    asked = limit
    kept: list[Current] = []
    for _ in range(_MOST_TRIES):
        found = await ask(asked)
        documents = await document_payloads(engine, collection, found)
        kept = _kept(found, documents)
        versions = {name: documents.get(name, {}).get("version") for name in _names(found)}
        hidden = _names([record for record in found if not _is_current(record, documents)])
        settled = all(name in known and known[name] == versions[name] for name in hidden)
        if settled and (len(kept) >= limit or len(found) < asked):
            break
        known = versions
        asked = limit + 2 * (len(found) - len(kept))
    return kept[:limit]


async def accepted_text(
    engine: Engine, collection: str, tenant: str, document_id: UUID
) -> str | None:
    """The accepted text of the tenant's document; None if there is no such document."""
    for _ in range(_MOST_TRIES):
        found = await engine.retrieve(collection, [document_id])
        payload = found[0].payload if found else {}
        if (payload.get("kind"), payload.get("tenant")) != ("document", tenant):
            return None
        ids = text_point_ids(document_id, payload["version"], payload["text_parts"])
        parts = {part.id: part for part in await engine.retrieve(collection, ids)} if ids else {}
        # Fewer where the document was replaced between the two reads.
        if len(parts) == len(ids):
            return "".join(parts[id_].payload["text"] for id_ in ids)
    raise UnavailableError(f"Qdrant has lost text of document {document_id} in {collection}")


async def document_payloads(
    engine: Engine, collection: str, found: Sequence[Record]
) -> dict[str, Payload]:
    """The payloads of these chunks' documents by document id."""
    names = _names(found)
    records = await engine.retrieve(collection, [UUID(name) for name in names]) if names else []
    return {str(record.id): record.payload for record in records}


def _kept(found: Sequence[Record], documents: dict[str, Payload]) -> list[Current]:
    return [
        Current(record, documents[record.payload["document_id"]])
        for record in found
        if _is_current(record, documents)
    ]


def _is_current(record: Record, documents: dict[str, Payload]) -> bool:
    document = documents.get(record.payload["document_id"])
    return document is not None and has_version(record.payload, document["version"])


def _names(found: Sequence[Record]) -> set[str]:
    return {record.payload["document_id"] for record in found}
