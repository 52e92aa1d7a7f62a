"""The one seam for "something that stores".

Everything belongs to one (tenant, corpus); no method reaches across. A store that fails raises
UnavailableError (it is down, or broken), ConfigError (it may not do this) or StageError at stage
`store` (it refused this document).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ragplane.core.errors import InputError
from ragplane.core.schema import Chunk, Document, Page
from ragplane.core.tokens import is_unicode

if TYPE_CHECKING:
    from retrieval.stores.connections import Connection

MAX_NAME_CHARACTERS = 200

# Gives the vectors of chunks, float32 [len(chunks), dimensions].
Embed = Callable[[Sequence[Chunk]], Awaitable[NDArray[np.float32]]]


@dataclass(frozen=True, slots=True)
class CorpusKey:
    """The scope of every read and write. Raises InputError for a name that no store can keep."""

    tenant: str
    corpus: str

    def __post_init__(self) -> None:
        for param, name in (("tenant", self.tenant), ("corpus", self.corpus)):
            if not name.strip():
                raise InputError(f"the {param} has no name", param=param)
            if len(name) > MAX_NAME_CHARACTERS:
                cause = f"has {len(name)} characters, {MAX_NAME_CHARACTERS} are allowed"
                raise InputError(f"the name of the {param} {cause}", param=param)
            if "\x00" in name or not is_unicode(name):
                cause = "holds a NUL character or a lone surrogate"
                raise InputError(f"the name of the {param} {cause}", param=param)


@dataclass(frozen=True, slots=True)
class Scored:
    """A chunk that one leg found, with that leg's own score (higher is better)."""

    chunk_id: UUID
    score: float


@dataclass(frozen=True, slots=True)
class CorpusStatus:
    """What a corpus holds. `pages` counts pages by route."""

    documents: int
    pages: Mapping[str, int]
    chunks: int
    tokens: int
    fingerprint: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class PointFact:
    """What a point (a chunk with its vector) belongs to: enough to compare a store with a manifest.

    `text_sha256` is the chunk's, `generation` its document's when the point was written.
    """

    document_id: UUID
    generation: int
    text_sha256: str


class Fence(Protocol):
    """The right to write a document, which may pass to another writer at any time."""

    async def check(self) -> None:
        """Raise StageError if the right is lost."""
        ...

    async def check_in(self, connection: Connection) -> None:
        """As `check`, of a store in the ledger's own database: nobody takes the right from then on
        until this connection's transaction ends."""
        ...


class Reembedding(Protocol):
    """A second set of vectors of a corpus, for a change of its model (blue-green).

    `begin`, `fill`, compare `points` with the manifest, `switch`, and after a grace time
    `drop_unused`. Searches go on with the vectors in use meanwhile. Every step may run again, after
    a kill too. After a switch the second set is that of the old model, so to switch back is to
    change to that model: only what came since is embedded then.
    """

    async def begin(self, key: CorpusKey, *, fingerprint: str, dimensions: int) -> None:
        """Make room for this model's vectors; what it has of them stays.

        Raises ConfigError where there is no such corpus, where it is of this model already, or
        where the second set is of yet another one.
        """
        ...

    async def fill(self, key: CorpusKey, fingerprint: str, embed: Embed) -> int:
        """Embed the chunks that have no vector of this model yet; how many there were.

        Raises StageError at `store` for vectors of another shape or without a direction.
        """
        ...

    async def points(self, key: CorpusKey, fingerprint: str) -> dict[UUID, PointFact]:
        """Every point of the corpus that has a vector of this model in the second set."""
        ...

    async def switch(self, key: CorpusKey, fingerprint: str) -> bool:
        """Put this model's vectors in use and keep the others as the second set, atomically.

        False, with nothing changed, where a chunk has no such vector. Doing it twice is fine.
        """
        ...

    async def drop_unused(self, key: CorpusKey) -> str | None:
        """Remove the second set: an old model's, or one half filled. Its fingerprint, if any."""
        ...


class Store(Protocol):
    """Documents with their pages, chunks and vectors, and the two legs of hybrid search."""

    @property
    def reembedding(self) -> Reembedding:
        """How a corpus is brought to another model."""
        ...

    async def open_corpus(self, key: CorpusKey, *, fingerprint: str, dimensions: int) -> None:
        """Create the corpus, or check that it was made with this model (else ConfigError)."""
        ...

    async def fingerprint(self, key: CorpusKey) -> str | None:
        """Fingerprint the corpus was made with; None if there is no such corpus."""
        ...

    async def documents(self, key: CorpusKey) -> dict[str, Document]:
        """Every document of the corpus by its source."""
        ...

    async def replace_document(
        self,
        document: Document,
        pages: Sequence[Page],
        chunks: Sequence[Chunk],
        vectors: NDArray[np.float32],
        *,
        fingerprint: str | None = None,
        fence: Fence | None = None,
    ) -> None:
        """Put the document in place of any earlier generation, all or nothing.

        `vectors` is float32 [len(chunks), dimensions]. Running it twice changes nothing. Where the
        vectors' `fingerprint` is given, ConfigError if the corpus has come to another model. The
        `fence` is checked as late as the store can, and nothing is changed if it is lost.
        """
        ...

    async def delete_document(
        self, key: CorpusKey, document_id: UUID, *, fence: Fence | None = None
    ) -> None:
        """Remove the document with its pages, chunks and vectors, all or nothing.

        `fence` as in `replace_document`.
        """
        ...

    async def move_document(self, key: CorpusKey, document_id: UUID, source: str) -> None:
        """Give the document another source; its id, pages, chunks and vectors stay."""
        ...

    async def points(self, key: CorpusKey) -> dict[UUID, PointFact]:
        """Every point of the corpus by its id, for verification."""
        ...

    async def delete_points(self, key: CorpusKey, ids: Sequence[UUID]) -> None:
        """Remove the points with these ids that are in the corpus; their documents stay."""
        ...

    async def dense(self, key: CorpusKey, vector: NDArray[np.float32], limit: int) -> list[Scored]:
        """The nearest chunks to the query `vector` [dimensions] by cosine, best first."""
        ...

    async def lexical(self, key: CorpusKey, query: str, limit: int) -> list[Scored]:
        """The best chunks by BM25 (Robertson and Zaragoza 2009), best first."""
        ...

    async def chunks(
        self, key: CorpusKey, ids: Sequence[UUID]
    ) -> dict[UUID, tuple[Chunk, Document]]:
        """The chunks with these ids that are in the corpus, each with its document."""
        ...

    async def accepted_text(self, key: CorpusKey, document_id: UUID) -> str | None:
        """The text that chunk offsets count in; None if there is no such document."""
        ...

    async def status(self, key: CorpusKey) -> CorpusStatus | None:
        """What the corpus holds; None if there is no such corpus."""
        ...

    async def aclose(self) -> None:
        """Close connections; an embedded database stops with its last user."""
        ...
