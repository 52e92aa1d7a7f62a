"""Retrieval quality: each leg, the fusion, and the fusion reranked, on one corpus of passages."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.chunking import chunk_document
from ingest.identity import document_id, text_sha256
from ingest.parsed import flowing_page
from ragplane.core.schema import Block, Document
from retrieval.fusion import fuse
from retrieval.search import Searcher
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.local import LocalEncoder

KEY = CorpusKey("bench", "nq")
LEG_LIMIT = 50
EMBED_AT_ONCE = 64


@dataclass(frozen=True)
class Passage:
    """A question and the passage that answers it."""

    question: str
    title: str
    text: str

    @property
    def source(self) -> str:
        return f"nq:{text_sha256(self.title + self.text)}"


def read_nq(file: Path, limit: int | None = None) -> list[Passage]:
    """Natural Questions with their gold passages, a JSON object a line."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    return [Passage(row["question"], row["title"], row["text"]) for row in rows[:limit]]


async def fill(store: MemoryStore, encoder: LocalEncoder, passages: Sequence[Passage]) -> None:
    """Store each passage as a document of its own."""
    model = encoder.registry.pick("embed")
    fingerprint, dimensions = await encoder.fingerprint(), model.files.dimensions
    await store.open_corpus(KEY, fingerprint=fingerprint, dimensions=dimensions)
    distinct = list({passage.source: passage for passage in passages}.values())
    for start in range(0, len(distinct), EMBED_AT_ONCE):
        batch = []
        for passage in distinct[start : start + EMBED_AT_ONCE]:
            document = _document(passage)
            page = flowing_page([Block("paragraph", passage.text)], 0.0)
            chunks = chunk_document(document, [page], model.tokenizer, model.files.max_tokens)
            batch.append((document, page, chunks))
        texts = [chunk.embedded_text for _, _, chunks in batch for chunk in chunks]
        vectors = iter((await encoder.embed(texts)).vectors)
        for document, page, chunks in batch:
            rows = [next(vectors) for _ in chunks]
            await store.replace_document(document, [page], chunks, np.stack(rows))


async def measure(
    store: MemoryStore, encoder: LocalEncoder, passages: Sequence[Passage]
) -> list[str]:
    """A Markdown table: recall@1, recall@5 and MRR@10 of each stage, and its time a question."""
    ranks: dict[str, list[int | None]] = {}
    seconds: dict[str, float] = {}
    searcher = Searcher(store, encoder)
    for passage in passages:
        vector = (await encoder.embed([passage.question], input_type="query")).vectors[0]
        dense = [s.chunk_id for s in await store.dense(KEY, vector, LEG_LIMIT)]
        lexical = [s.chunk_id for s in await store.lexical(KEY, passage.question, LEG_LIMIT)]
        fused = [i for i, _ in fuse({"d": dense, "l": lexical}, {"d": 1.0, "l": 1.0})]
        started = time.perf_counter()
        found = (await searcher.search(passage.question, KEY, 10)).result
        seconds["all"] = seconds.get("all", 0.0) + time.perf_counter() - started
        for name, ids in (("dense", dense), ("lexical", lexical), ("fused", fused)):
            rows = await store.chunks(KEY, ids[:10])
            ordered = [rows[i][1].source for i in ids[:10]]
            ranks.setdefault(name, []).append(_rank(ordered, passage.source))
        ordered = [hit.document.source for hit in found.hits]
        ranks.setdefault("fused and reranked", []).append(_rank(ordered, passage.source))
    table = ["| stage | recall@1 | recall@5 | MRR@10 |", "|---|---|---|---|"]
    table += [f"| {name} | {_figures(found)} |" for name, found in ranks.items()]
    return [*table, "", f"{seconds['all'] / len(passages) * 1000:.0f} ms a whole search"]


def _document(passage: Passage) -> Document:
    return Document(
        id=document_id(KEY.tenant, KEY.corpus, passage.source),
        tenant=KEY.tenant,
        corpus=KEY.corpus,
        source=passage.source,
        sha256=text_sha256(passage.text),
        mime="text/plain",
        title=passage.title,
    )


def _rank(sources: Sequence[str], wanted: str) -> int | None:
    return sources.index(wanted) + 1 if wanted in sources else None


def _figures(ranks: Sequence[int | None]) -> str:
    first = sum(rank == 1 for rank in ranks) / len(ranks)
    five = sum(rank is not None and rank <= 5 for rank in ranks) / len(ranks)
    mrr = sum(1 / rank for rank in ranks if rank) / len(ranks)
    return f"{first:.3f} | {five:.3f} | {mrr:.3f}"
