"""Every store, and a maker of documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pytest
from httpx import Headers
from numpy.typing import NDArray
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse

from ragplane.core.config import Settings
from ragplane.core.schema import BBox, Block, Chunk, Document, Page, PageBox, PageSignals
from retrieval.stores.base import CorpusKey, Store
from retrieval.stores.memory import MemoryStore
from retrieval.stores.postgres import PostgresStore
from retrieval.stores.qdrant.client import ServerEngine
from retrieval.stores.qdrant.edge import EdgeEngine
from retrieval.stores.qdrant.store import QdrantStore

DIMENSIONS = 8


class Parts(NamedTuple):
    """The arguments of `replace_document`."""

    document: Document
    pages: list[Page]
    chunks: list[Chunk]
    vectors: NDArray[np.float32]


MakeDocument = Callable[..., Parts]


def build_document(
    key: CorpusKey,
    texts: Sequence[str],
    *,
    source: str = "file:///a.txt",
    generation: int = 1,
    dimensions: int = DIMENSIONS,
) -> Parts:
    """A document of one page a text and one chunk a page, with vectors that depend on the text."""
    document = Document(
        id=uuid5(NAMESPACE_URL, f"{key.tenant}|{key.corpus}|{source}"),
        tenant=key.tenant,
        corpus=key.corpus,
        source=source,
        sha256=uuid5(NAMESPACE_URL, "|".join(texts)).hex * 2,
        mime="text/plain",
        title=source.rsplit("/", 1)[-1],
        generation=generation,
    )
    return Parts(
        document,
        [build_page(number, text) for number, text in enumerate(texts, 1)],
        build_chunks(document, texts),
        np.array([build_vector(text, dimensions) for text in texts], dtype=np.float32).reshape(
            len(texts), dimensions
        ),
    )


def build_page(number: int, text: str) -> Page:
    """A page of one paragraph; blank if there is no text."""
    signals = PageSignals(
        characters=len(text), words=1, unmapped_share=0.0, image_coverage=0.0, drawings=0
    )
    blocks = (Block("paragraph", text),) if text else ()
    route = "text" if text else "blank"
    return Page(number, 595.0, 842.0, 0, route, "because", signals, blocks, 0.25)


def build_chunks(document: Document, texts: Sequence[str]) -> list[Chunk]:
    """One chunk a text, with the offsets it has in the joined pages."""
    chunks: list[Chunk] = []
    start = 0
    for ordinal, text in enumerate(texts):
        chunks.append(
            Chunk(
                id=uuid5(document.id, f"{ordinal}|{text}"),
                document_id=document.id,
                ordinal=ordinal,
                text=text,
                prefix="",
                heading_path=("Part", f"Page {ordinal + 1}"),
                first_page=ordinal + 1,
                last_page=ordinal + 1,
                start=start,
                end=start + len(text),
                tokens=len(text.split()),
                sha256=uuid5(NAMESPACE_URL, text).hex * 2,
                boxes=(PageBox(ordinal + 1, BBox(10.5, 20, 300, 40)),),
            )
        )
        start += len(text) + 1
    return chunks


def build_vector(text: str, dimensions: int = DIMENSIONS) -> NDArray[np.float32]:
    """A random direction, the same for the same text."""
    seed = uuid5(NAMESPACE_URL, text).int % 2**32
    return np.random.default_rng(seed).normal(size=dimensions).astype(np.float32)


@pytest.fixture
def make_document() -> MakeDocument:
    return build_document


@pytest.fixture
def vector_of() -> Callable[..., NDArray[np.float32]]:
    return build_vector


@pytest.fixture
async def postgres_store(postgres_home: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(Settings(home=postgres_home))
    yield store
    await store.aclose()


class LocalClient(AsyncQdrantClient):
    """qdrant-client's local mode, where it differs from a server made to answer as one."""

    def __init__(self) -> None:
        super().__init__(":memory:")

    async def retrieve(self, collection_name: str, *args: Any, **kwargs: Any) -> Any:
        if not await self.collection_exists(collection_name):
            raise UnexpectedResponse(404, "Not Found", b"", Headers())
        return await super().retrieve(collection_name, *args, **kwargs)

    async def create_payload_index(self, *args: Any, **kwargs: Any) -> Any:
        """Local mode has none, and warns."""

    async def query_points(self, *args: Any, search_params: Any = None, **kwargs: Any) -> Any:
        known = search_params if search_params.idf else None  # it warns of the others
        return await super().query_points(*args, search_params=known, **kwargs)

    async def collection_exists(self, collection_name: str, **kwargs: Any) -> bool:
        aliases = (await self.get_aliases()).aliases
        known = collection_name in {alias.alias_name for alias in aliases}
        return known or await super().collection_exists(collection_name, **kwargs)


@pytest.fixture
async def edge_engine(tmp_path: Path) -> AsyncIterator[EdgeEngine]:
    engine = EdgeEngine(tmp_path / "qdrant")
    yield engine
    await engine.aclose()


@pytest.fixture
async def client_engine() -> AsyncIterator[ServerEngine]:
    """The engine of the HTTP client, over its local mode."""
    engine = ServerEngine(LocalClient(), "memory")
    yield engine
    await engine.aclose()


@pytest.fixture(params=["memory", "postgres", "qdrant-client", "qdrant-edge"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """Every implementation in turn."""
    opened = await _open(request)
    yield opened
    await opened.aclose()


async def _open(request: pytest.FixtureRequest) -> Store:
    match request.param:
        case "memory":
            return MemoryStore()
        case "postgres":
            home = request.getfixturevalue("postgres_home")
            return await PostgresStore.open(Settings(home=home))
        case "qdrant-client":
            return QdrantStore(ServerEngine(LocalClient(), "memory"))
        case _:
            return QdrantStore(EdgeEngine(request.getfixturevalue("tmp_path") / "qdrant"))
