"""Between the schema's types and the rows of PostgreSQL. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from ragplane.core.schema import BBox, Chunk, Document, Page, PageBox
from retrieval.stores.base import CorpusKey
from retrieval.stores.terms import terms

Row = dict[str, Any]

# The column types of the binary COPY statements, in their order.
# fmt: off
PAGE_TYPES = (
    "uuid", "int4", "float8", "float8", "int4", "text", "text", "jsonb", "text", "jsonb", "float8",
    "float8", "int4", "jsonb", "jsonb",
)
CHUNK_TYPES = (
    "uuid", "int8", "uuid", "int4", "text", "text", "text[]", "int4", "int4", "int4", "int4",
    "int4", "text", "int4", "jsonb",
)
# fmt: on
VECTOR_TYPES = ("uuid", "int2", "int8", "int4", "halfvec")
POSTING_TYPES = ("int8", "text", "uuid", "int4", "int4")


def scope(key: CorpusKey) -> Row:
    """The parameters of a corpus."""
    return {"tenant": key.tenant, "corpus": key.corpus}


def page_rows(document_id: UUID, pages: Sequence[Page]) -> Iterator[tuple[object, ...]]:
    """Rows for `copy_pages`."""
    for page in pages:
        yield (
            document_id,
            page.number,
            page.width_points,
            page.height_points,
            page.rotation,
            page.route,
            page.reason,
            Jsonb(asdict(page.signals)),
            page.text,
            Jsonb([asdict(block) for block in page.blocks]),
            page.seconds,
            page.confidence,
            page.vlm_tokens,
            Jsonb([asdict(note) for note in page.notes]),
            _error(page),
        )


def _error(page: Page) -> Jsonb | None:
    return Jsonb({"stage": page.error.stage, "cause": page.error.cause}) if page.error else None


def chunk_rows(
    corpus_id: int,
    chunks: Sequence[Chunk],
    counts: Sequence[Counter[str]],
) -> Iterator[tuple[object, ...]]:
    """Rows for `copy_chunks`."""
    for chunk, count in zip(chunks, counts, strict=True):
        yield (
            chunk.id,
            corpus_id,
            chunk.document_id,
            chunk.ordinal,
            chunk.text,
            chunk.prefix,
            list(chunk.heading_path),
            chunk.first_page,
            chunk.last_page,
            chunk.start,
            chunk.end,
            chunk.tokens,
            chunk.sha256,
            count.total(),
            Jsonb([[page, *box] for page, box in chunk.boxes]),
        )


def vector_rows(
    corpus: Mapping[str, Any], chunks: Sequence[Chunk], units: NDArray[np.float32]
) -> Iterator[tuple[object, ...]]:
    """Rows for `copy_vectors`, of the set in use. `units` is float32 [len(chunks), dimensions]."""
    for chunk, unit in zip(chunks, units, strict=True):
        yield chunk.id, corpus["slot"], corpus["id"], len(unit), HalfVector(unit)


def posting_rows(
    corpus_id: int, chunks: Sequence[Chunk], counts: Sequence[Counter[str]]
) -> list[tuple[object, ...]]:
    """Rows for `copy_postings`, in the order of their index."""
    found = [
        (term, chunk.id, tf, total)
        for chunk, count in zip(chunks, counts, strict=True)
        for total in [count.total()]
        for term, tf in count.items()
    ]
    return [(corpus_id, *posting) for posting in sorted(found)]


def term_counts(chunks: Sequence[Chunk]) -> list[Counter[str]]:
    """How often each term occurs in each chunk, its prefix included."""
    return [Counter(terms(chunk.embedded_text)) for chunk in chunks]


def document_from(key: CorpusKey, row: Mapping[str, Any]) -> Document:
    """The document of a row of `documents`."""
    return Document(
        id=row["id"],
        tenant=key.tenant,
        corpus=key.corpus,
        source=row["source"],
        sha256=row["sha256"],
        mime=row["mime"],
        title=row["title"],
        generation=row["generation"],
    )


def chunk_from(row: Mapping[str, Any]) -> Chunk:
    """The chunk of a row of `chunks`."""
    return Chunk(
        id=row["id"],
        document_id=row["document_id"],
        ordinal=row["ordinal"],
        text=row["text"],
        prefix=row["prefix"],
        heading_path=tuple(row["heading_path"]),
        first_page=row["first_page"],
        last_page=row["last_page"],
        start=row["start_offset"],
        end=row["end_offset"],
        tokens=row["tokens"],
        sha256=row["sha256"],
        boxes=tuple(PageBox(page, BBox(*box)) for page, *box in row["boxes"]),
    )


def chunk_document_from(key: CorpusKey, row: Mapping[str, Any]) -> Document:
    """The document of a row of `chunks`."""
    renamed = {"id": row["document_id"], "sha256": row["document_sha256"]}
    return document_from(key, {**row, **renamed})
