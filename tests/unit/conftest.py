"""A small corpus in memory, built by the real chunker over the fake encoder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from ingest.chunking import chunk_document
from ingest.identity import document_id, text_sha256
from ingest.parsed import flowing_page
from ragplane.core.models import read_model
from ragplane.core.schema import Block, Document
from ragplane.core.tokens import TextTokenizer
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.fake import FakeEncoder

KEY = CorpusKey("acme", "manuals")
AddDocument = Callable[..., Awaitable[Document]]
AddTable = Callable[..., Awaitable[Document]]


@pytest.fixture(scope="session")
def tokenizer() -> TextTokenizer:
    """The bundled model's tokenizer."""
    return TextTokenizer(read_model("bundled").folder / "tokenizer.json")


@pytest.fixture
def key() -> CorpusKey:
    return KEY


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder(dimensions=256)


@pytest.fixture
def memory_store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def add_document(
    memory_store: MemoryStore, encoder: FakeEncoder, tokenizer: TextTokenizer
) -> AddDocument:
    """Store a document of one heading and some paragraphs."""

    async def add(
        name: str, *paragraphs: str, title: str = "Manual", key: CorpusKey = KEY
    ) -> Document:
        blocks = [Block("paragraph", text) for text in paragraphs]
        return await store_blocks(memory_store, encoder, tokenizer, name, blocks, title, key)

    return add


@pytest.fixture
def add_table(
    memory_store: MemoryStore, encoder: FakeEncoder, tokenizer: TextTokenizer
) -> AddTable:
    """Store a document of one table, its header row first."""

    async def add(header: str, *rows: str) -> Document:
        blocks = [Block("table_row", row, header=header) for row in (header, *rows)]
        return await store_blocks(memory_store, encoder, tokenizer, "t.md", blocks, "Table", KEY)

    return add


async def store_blocks(
    store: MemoryStore,
    encoder: FakeEncoder,
    tokenizer: TextTokenizer,
    name: str,
    blocks: list[Block],
    title: str,
    key: CorpusKey,
) -> Document:
    """Chunk, embed and store one page of blocks."""
    source = f"file:///{name}"
    document = Document(
        id=document_id(key.tenant, key.corpus, source),
        tenant=key.tenant,
        corpus=key.corpus,
        source=source,
        sha256=text_sha256("".join(block.text for block in blocks)),
        mime="text/plain",
        title=title,
    )
    page = flowing_page(blocks, 0.0)
    chunks = chunk_document(document, [page], tokenizer, 64)
    embedded = await encoder.embed([chunk.embedded_text for chunk in chunks])
    fingerprint = await encoder.fingerprint()
    await store.open_corpus(key, fingerprint=fingerprint, dimensions=256)
    await store.replace_document(document, [page], chunks, embedded.vectors)
    return document
