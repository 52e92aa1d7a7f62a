"""The steps of a write to PostgreSQL. Each runs in the caller's transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import Error

from ragplane.core.errors import StageError
from ragplane.core.schema import Chunk, Document, Page
from retrieval.stores import rows
from retrieval.stores.base import CorpusKey
from retrieval.stores.connections import Connection, fetch_all, fetch_one, first_line
from retrieval.stores.faults import fault_of
from retrieval.stores.rows import Row
from retrieval.stores.sql import statement


class Size(NamedTuple):
    """What a document adds to its corpus: chunks, and terms with repeats."""

    chunks: int
    terms: int


NOTHING = Size(0, 0)


@asynccontextmanager
async def refusals(document: Document) -> AsyncIterator[None]:
    """Turn what the database refuses about this document into StageError that names it."""
    try:
        yield
    except Error as error:
        if fault_of(error) != "document":
            raise
        raise StageError("store", first_line(error), document=document.source) from error


async def create_corpus(
    connection: Connection, key: CorpusKey, fingerprint: str, dimensions: int
) -> Row:
    """The corpus's row, made now unless another process was faster, and the index it needs."""
    corpus = {"tenant": key.tenant, "corpus": key.corpus}
    await create_index(connection, dimensions)
    await connection.execute(
        statement("insert_corpus"),
        corpus | {"fingerprint": fingerprint, "dimensions": dimensions},
    )
    [row] = await fetch_all(connection, statement("corpus"), corpus)
    return row


async def create_index(connection: Connection, dimensions: int) -> None:
    """The index of this vector length, unless it is there."""
    await connection.execute(statement("lock_schema"))
    present = await fetch_one(connection, statement("has_embedding_index", dimensions=dimensions))
    if present and not present["present"]:
        await connection.execute(statement("create_embedding_index", dimensions=dimensions))


async def clear_document(connection: Connection, corpus_id: int, document: Document) -> Size:
    """Put the document's row in place and remove what stood under its id or source."""
    place = {"corpus_id": corpus_id, "id": document.id, "source": document.source}
    await connection.execute(statement("lock_source"), place)
    gone = await _delete_namesakes(connection, place)
    facts = {name: getattr(document, name) for name in ("sha256", "mime", "title", "generation")}
    if not await fetch_one(connection, statement("upsert_document"), place | facts):
        raise StageError("store", "its id is taken", document=document.source)
    gone.append(await _delete_parts(connection, document.id))
    return _total(gone)


async def move_document(
    connection: Connection, key: CorpusKey, corpus_id: int, document_id: UUID, source: str
) -> Size:
    """Give the document, if the corpus has it, another source; what stood there and went."""
    place = {"corpus_id": corpus_id, "id": document_id, "source": source}
    scope = {"tenant": key.tenant, "corpus": key.corpus, "id": document_id}
    # The source before the row, as every writer does, or two could wait for each other.
    await connection.execute(statement("lock_source"), place)
    if not await fetch_one(connection, statement("lock_document"), scope):
        return NOTHING
    gone = await _delete_namesakes(connection, place)
    await connection.execute(statement("move_document"), place)
    return _total(gone)


async def write_parts(
    connection: Connection,
    corpus: Row,
    document_id: UUID,
    pages: Sequence[Page],
    chunks: Sequence[Chunk],
    units: NDArray[np.float32],
    counts: Sequence[Counter[str]],
) -> Size:
    """Write pages, chunks, vectors and postings. `units` is float32 [len(chunks), dimensions]."""
    await _copy(connection, "copy_pages", rows.PAGE_TYPES, rows.page_rows(document_id, pages))
    await _copy(
        connection,
        "copy_chunks",
        rows.CHUNK_TYPES,
        rows.chunk_rows(corpus["id"], chunks, counts),
    )
    await _copy(
        connection, "copy_vectors", rows.VECTOR_TYPES, rows.vector_rows(corpus, chunks, units)
    )
    await _copy(
        connection,
        "copy_postings",
        rows.POSTING_TYPES,
        rows.posting_rows(corpus["id"], chunks, counts),
    )
    return Size(len(chunks), sum(count.total() for count in counts))


async def delete_document(connection: Connection, document_id: UUID) -> Size:
    """Remove the document with all its parts; what went."""
    gone = await _delete_parts(connection, document_id)
    await connection.execute(statement("delete_document"), {"id": document_id})
    return gone


async def delete_points(connection: Connection, corpus_id: int, ids: Sequence[UUID]) -> Size:
    """Remove chunks of the corpus with their postings; what went."""
    chosen = {"corpus_id": corpus_id, "ids": list(ids)}
    [gone] = await fetch_all(connection, statement("delete_points"), chosen)
    return Size(gone["chunks"], gone["terms"])


async def count(
    connection: Connection, corpus_id: int, *, written: Size = NOTHING, gone: Size
) -> None:
    """Keep the corpus's totals. Comes last: it holds up the corpus's other writers."""
    change = {"chunks": written.chunks - gone.chunks, "terms": written.terms - gone.terms}
    await connection.execute(statement("count"), change | {"corpus_id": corpus_id})


async def _delete_namesakes(connection: Connection, place: Row) -> list[Size]:
    return [
        await delete_document(connection, namesake["id"])
        for namesake in await fetch_all(connection, statement("namesakes"), place)
    ]


def _total(sizes: Iterable[Size]) -> Size:
    found = list(sizes)
    return Size(sum(size.chunks for size in found), sum(size.terms for size in found))


async def _delete_parts(connection: Connection, document_id: UUID) -> Size:
    await connection.execute(statement("delete_pages"), {"id": document_id})
    [gone] = await fetch_all(connection, statement("delete_chunks"), {"id": document_id})
    return Size(gone["chunks"], gone["terms"])


async def _copy(
    connection: Connection,
    name: str,
    types: Sequence[str],
    table: Iterable[tuple[object, ...]],
) -> None:
    async with connection.cursor() as cursor, cursor.copy(statement(name)) as copy:
        copy.set_types(types)
        for row in table:
            await copy.write_row(row)
