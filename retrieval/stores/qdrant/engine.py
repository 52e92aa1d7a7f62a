"""The seam to the Qdrant engine: the few calls that the store needs, in its own plain types.

A call on a collection takes its name or an alias of it. Each raises UnavailableError where the
engine is down, ConfigError where it does not let us in, and RefusedError where it does not take
this request; all name the engine's host or folder and the purpose.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from uuid import UUID

from ragplane.core.errors import StageError

DENSE = "dense"
SPARSE = "sparse"

# Points of one request: at 4,000 dimensions still well under the server's limit of 32 MB.
BATCH_POINTS = 64
# Points of one page of a scroll, without vectors.
SCROLL_POINTS = 512

IndexKind = Literal["tenant", "keyword", "integer"]
INDEXES: Mapping[str, IndexKind] = {
    "tenant": "tenant",
    "corpus": "keyword",
    "kind": "keyword",
    "source": "keyword",
    "document_id": "keyword",
    "generation": "integer",
    "versions[].id": "keyword",
}

_EF_SEARCH_LEAST = 100
_EF_SEARCH_MOST = 1_000

Payload = dict[str, Any]


class RefusedError(StageError):
    """The engine does not take this request, now or later; others it does."""

    def __init__(self, cause: str) -> None:
        super().__init__("store", cause)


@dataclass(frozen=True, slots=True)
class Sparse:
    """A sparse vector; every index occurs once."""

    indices: list[int]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Point:
    """What is written: a payload under an id, with up to one vector of each kind."""

    id: UUID
    payload: Payload
    dense: list[float] | None = None
    sparse: Sparse | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """What is read. `score` is that of a search, higher is better."""

    id: UUID
    payload: Payload
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Where:
    """The points whose payload has all values of `equal` and none of `unequal`, out of `ids`."""

    equal: Mapping[str, str | int]
    unequal: Mapping[str, str | int] = field(default_factory=dict)
    ids: Sequence[UUID] | None = None


EVERYTHING = Where({})


def ef_search(limit: int) -> int:
    """How many candidates the walk through the HNSW graph keeps for `limit` results."""
    return min(max(_EF_SEARCH_LEAST, 2 * limit), _EF_SEARCH_MOST)


class Engine(Protocol):
    """Collections of points, each with one dense (cosine) and one sparse (IDF) vector."""

    async def create(self, collection: str, dimensions: int) -> None:
        """Make the collection and its payload indexes, as far as they do not exist."""
        ...

    async def drop(self, collection: str) -> None:
        """Remove the collection, if it exists."""
        ...

    async def collections(self) -> list[str]:
        """The names of all collections."""
        ...

    async def aliases(self) -> dict[str, str]:
        """Every alias with the collection that it stands for."""
        ...

    async def switch_alias(self, alias: str, collection: str) -> None:
        """Let the alias stand for this collection, atomically, whatever it stood for."""
        ...

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write the points over those with the same ids; durable and visible on return."""
        ...

    async def delete(self, collection: str, where: Where) -> None:
        """Remove these points; durable and visible on return."""
        ...

    async def retrieve(self, collection: str, ids: Sequence[UUID]) -> list[Record]:
        """The points with these ids, in any order; none where there is no such collection."""
        ...

    def scroll(
        self, collection: str, where: Where, fields: Sequence[str] | None = None
    ) -> AsyncIterator[list[Record]]:
        """All these points, page by page, with all of their payload or these fields of it."""
        ...

    async def search(
        self, collection: str, query: list[float] | Sparse, where: Where, limit: int
    ) -> list[Record]:
        """The nearest of these points, best first, with the payload fields of `FOUND_FIELDS`.

        The IDF of a sparse query is counted over the points of `where`.
        """
        ...

    async def aclose(self) -> None:
        """Close connections and files."""
        ...


# All that tells whether a found chunk is current.
FOUND_FIELDS = ("document_id", "versions[].id")
