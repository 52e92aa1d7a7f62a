"""What every store refuses, and the form in which it keeps vectors. Pure functions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ragplane.core.errors import ConfigError, InputError, StageError
from ragplane.core.schema import Chunk, Document, Page
from ragplane.core.tokens import is_unicode

# pgvector indexes half-precision vectors of up to 4,000 dimensions.
MAX_DIMENSIONS = 4000
# What an integer column holds; psycopg cuts more off a larger one without a word (binary COPY).
_MOST = 2**31 - 1


def check_dimensions(dimensions: int) -> None:
    """Refuse, with ConfigError, a vector length that cannot be indexed."""
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise ConfigError(
            f"a corpus takes vectors of 1 to {MAX_DIMENSIONS} dimensions, not {dimensions}"
        )


def check_same_model(
    corpus: str, *, made_with: tuple[str, int], asked_for: tuple[str, int]
) -> None:
    """Refuse, with ConfigError, another (fingerprint, dimensions) than the corpus was made with."""
    if made_with != asked_for:
        raise ConfigError(
            f"corpus {corpus!r} was made with the encoder {made_with[0]} "
            f"({made_with[1]} dimensions), not with {asked_for[0]} ({asked_for[1]} dimensions)"
        )


def check_made_by(corpus: str, made_with: str, given: str | None) -> None:
    """Refuse, with ConfigError, vectors of another model than the corpus is of now."""
    if given not in (None, made_with):
        raise ConfigError(f"corpus {corpus!r} is of the encoder {made_with} now, not of {given}")


def check_change(
    corpus: str, *, made_with: str | None, second: str | None, fingerprint: str
) -> None:
    """Refuse, with ConfigError, to begin a re-embedding that has no place.

    `made_with` and `second` are the models of the vectors in use, and of the second set.
    """
    if made_with is None:
        raise ConfigError(f"there is no corpus {corpus!r}")
    if made_with == fingerprint:
        raise ConfigError(f"corpus {corpus!r} is of the encoder {fingerprint} already")
    if second not in (None, fingerprint):
        raise ConfigError(
            f"corpus {corpus!r} still keeps vectors of the encoder {second}: drop them first"
        )


def check_document(document: Document, pages: Sequence[Page], chunks: Sequence[Chunk]) -> None:
    """Refuse, with StageError at `store`, what cannot be stored whole.

    That is text with a NUL character or a lone surrogate (PostgreSQL has no form for them;
    ingestion removes them), a page, chunk id or ordinal given twice, a chunk of another document,
    a number over 2,147,483,647.
    """
    if any(chunk.document_id != document.id for chunk in chunks):
        raise StageError("store", "a chunk belongs to another document", document=document.source)
    _check_distinct(document, "page", (page.number for page in pages))
    _check_distinct(document, "chunk", (chunk.id for chunk in chunks))
    _check_distinct(document, "chunk ordinal", (chunk.ordinal for chunk in chunks))
    if (largest := max(_numbers(pages, chunks), default=0)) > _MOST:
        raise StageError("store", f"the number {largest:,} is too large", document=document.source)
    for where, text in _texts(document, pages, chunks):
        if "\x00" in text or not is_unicode(text):
            cause = f"a NUL character or a lone surrogate in {where}"
            raise StageError("store", cause, document=ascii(document.source)[1:-1])


def unit_rows(
    document: Document | None, vectors: NDArray[np.float32], shape: tuple[int, int]
) -> NDArray[np.float32]:
    """The vectors at length 1, float32 [chunks, dimensions].

    Only directions count for cosine, and at length 1 half precision keeps most of them. Raises
    StageError where the shape is another, or a vector has no direction (zero, NaN, infinite).
    `document` is None for vectors of several.
    """
    source = document.source if document else None
    if vectors.shape != shape:
        cause = f"vectors of shape {vectors.shape}, expected {shape}"
        raise StageError("store", cause, document=source)
    norms = _norms(vectors)
    if not np.all(np.isfinite(norms) & (norms > 0)):
        raise StageError("store", "a vector is zero or not finite", document=source)
    return np.asarray(vectors / norms, dtype=np.float32)


def unit_query(vector: NDArray[np.float32], dimensions: int) -> NDArray[np.float32]:
    """The query vector [dimensions] at length 1. Raises InputError where it has no direction."""
    if vector.shape != (dimensions,):
        raise InputError(f"query vector of shape {vector.shape}, the corpus has ({dimensions},)")
    norm = _norms(vector)
    if not (np.isfinite(norm) and norm > 0):
        raise InputError("the query vector is zero or not finite")
    return np.asarray(vector / norm, dtype=np.float32)


def best_first(scores: Iterable[tuple[UUID, float]], limit: int) -> list[tuple[UUID, float]]:
    """The `limit` best, equal scores in the order of their ids."""
    return sorted(scores, key=lambda item: (-item[1], item[0]))[:limit]


def _norms(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    norms = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=vectors.ndim > 1)
    return np.asarray(norms, dtype=np.float64)


def _check_distinct(document: Document, what: str, values: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for value in values:
        if value in seen:
            raise StageError("store", f"{what} {value} is given twice", document=document.source)
        seen.add(value)


def _numbers(pages: Sequence[Page], chunks: Sequence[Chunk]) -> Iterator[int]:
    for page in pages:
        yield from (page.number, page.rotation, page.vlm_tokens)
    for chunk in chunks:
        yield from (chunk.ordinal, chunk.first_page, chunk.last_page, chunk.end, chunk.tokens)


def _texts(
    document: Document, pages: Sequence[Page], chunks: Sequence[Chunk]
) -> Iterator[tuple[str, str]]:
    for name in ("tenant", "corpus", "source", "sha256", "mime", "title"):
        yield name, getattr(document, name)
    for page in pages:
        yield f"page {page.number}", page.reason
        yield f"page {page.number}", page.error.cause if page.error else ""
        for note in page.notes:
            yield f"page {page.number}", note.text
        for block in page.blocks:
            yield f"page {page.number}", block.text
            yield f"page {page.number}", block.header or ""
    for chunk in chunks:
        for text in (chunk.text, chunk.prefix, chunk.sha256, *chunk.heading_path):
            yield f"chunk {chunk.ordinal}", text
