"""A real embedded PostgreSQL for the session, both stores, and a maker of documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import NAMESPACE_URL, uuid4, uuid5

import numpy as np
import pytest
from numpy.typing import NDArray

from ragplane.core.config import Settings
from ragplane.core.schema import Block, Chunk, Document, Page, PageSignals
from retrieval.stores.base import CorpusKey, Store
from retrieval.stores.embedded import EmbeddedServer
from retrieval.stores.memory import MemoryStore
from retrieval.stores.postgres import PostgresStore

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


@pytest.fixture(scope="session")
def postgres_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A RAGPLANE_HOME whose embedded PostgreSQL runs for the whole session."""
    home = tmp_path_factory.mktemp("home")
    server = EmbeddedServer(home / "postgres")
    server.start()
    yield home
    server.stop()


@pytest.fixture(scope="session")
def conninfo(postgres_home: Path) -> Iterator[str]:
    """How to connect to it besides the store."""
    server = EmbeddedServer(postgres_home / "postgres")
    yield server.start()
    server.stop()


@pytest.fixture
async def postgres_store(postgres_home: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(Settings(home=postgres_home))
    yield store
    await store.aclose()


@pytest.fixture(params=["memory", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """Every implementation in turn."""
    if request.param == "memory":
        memory = MemoryStore()
        yield memory
        await memory.aclose()
        return
    home = request.getfixturevalue("postgres_home")
    postgres = await PostgresStore.open(Settings(home=home))
    yield postgres
    await postgres.aclose()


@pytest.fixture
def key() -> CorpusKey:
    """A scope that no other test uses."""
    return CorpusKey(tenant=uuid4().hex, corpus="manuals")
