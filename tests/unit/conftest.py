"""A small corpus in memory, built by the real chunker over the fake encoder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from ingest.chunking import chunk_document
from ingest.identity import document_id, text_sha256
from ingest.parsed import flowing_page
from ragplane.core.models import read_encoder
from ragplane.core.schema import Block, Document
from ragplane.core.tokens import TextTokenizer
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.fake import FakeEncoder

KEY = CorpusKey("acme", "manuals")
AddDocument = Callable[..., Awaitable[Document]]


@pytest.fixture(scope="session")
def tokenizer() -> TextTokenizer:
    """The bundled model's tokenizer."""
    return TextTokenizer(read_encoder("bundled").folder / "tokenizer.json")


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
        source = f"file:///{name}"
        document = Document(
            id=document_id(key.tenant, key.corpus, source),
            tenant=key.tenant,
            corpus=key.corpus,
            source=source,
            sha256=text_sha256("".join(paragraphs)),
            mime="text/plain",
            title=title,
        )
        page = flowing_page([Block("paragraph", text) for text in paragraphs], 0.0)
        chunks = chunk_document(document, [page], tokenizer, 64)
        embedded = await encoder.embed([chunk.embedded_text for chunk in chunks])
        fingerprint = await encoder.fingerprint()
        await memory_store.open_corpus(key, fingerprint=fingerprint, dimensions=256)
        await memory_store.replace_document(document, [page], chunks, embedded.vectors)
        return document

    return add
