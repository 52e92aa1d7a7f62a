"""Between the schema's types and Qdrant's points. Pure functions.

A collection holds four kinds of points, told apart by `kind`:

- `corpus`, one a tenant: that the tenant has this corpus, and the model it was made with.
- `document`: the document, what it amounts to, and its current `version`.
- `chunk`, under the chunk's own id, with its vectors. What the chunk is stands in `versions`, by
  version of the document: two while a new version with the same chunk is being written.
- `text`: a slice of the accepted text of one version of a document.

A chunk or text counts as present if its document's point names one of its versions. So writing
the document's point is what puts all of a new version in place of all of the old one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray

from ragplane.core.schema import BBox, Chunk, Document, Page, PageBox, join_pages
from retrieval.stores import bm25
from retrieval.stores.base import CorpusKey, PointFact
from retrieval.stores.qdrant.engine import Payload, Point, Record, Sparse
from retrieval.stores.terms import terms

# A point's value must not depend on the other points, so the mean length that BM25 divides by is
# fixed: that of our documentation and sample texts, cut at 200 tokens.
MEAN_TERMS = 110
# A slice stays far below the 32 MB that the server takes in one request.
TEXT_PART_CHARACTERS = 500_000

FACT_FIELDS = ("document_id", "generation", "text_sha256")


class Corpus(NamedTuple):
    """A tenant's corpus: where it is, and with which model it was made."""

    collection: str
    fingerprint: str
    dimensions: int


def corpus_point_id(key: CorpusKey) -> UUID:
    """The id of the point that says that the tenant has this corpus."""
    # A name cannot hold a NUL character, which thus keeps the two apart.
    return uuid5(UUID(int=0), f"{key.tenant}\x00{key.corpus}")


def corpus_point(key: CorpusKey, corpus: Corpus) -> Point:
    """The point that says that the tenant has this corpus."""
    facts = {"kind": "corpus", "tenant": key.tenant, "corpus": key.corpus}
    return Point(corpus_point_id(key), facts | corpus._asdict())


def corpus_from(record: Record) -> Corpus:
    """The corpus of its point."""
    return Corpus(**{name: record.payload[name] for name in Corpus._fields})


def document_point(
    document: Document, version: str, pages: Sequence[Page], chunks: Sequence[Chunk]
) -> Point:
    """The point that makes this version of the document the current one."""
    payload = {
        "kind": "document",
        "tenant": document.tenant,
        "corpus": document.corpus,
        "document_id": str(document.id),
        "source": document.source,
        "sha256": document.sha256,
        "mime": document.mime,
        "title": document.title,
        "generation": document.generation,
        "version": version,
        "pages": dict(Counter(page.route for page in pages)),
        "chunks": len(chunks),
        "tokens": sum(chunk.tokens for chunk in chunks),
        "text_parts": len(_parts(accepted_text(pages))),
    }
    return Point(document.id, payload)


def document_from(payload: Payload) -> Document:
    """The document of its point's payload."""
    names = ("tenant", "corpus", "source", "sha256", "mime", "title", "generation")
    return Document(id=UUID(payload["document_id"]), **{name: payload[name] for name in names})


def without_chunks(document: Record, gone: Iterable[Record]) -> Point:
    """The document's point, less what these chunks of its current version amounted to."""
    payload = dict(document.payload)
    for record in gone:
        for facts in record.payload["versions"]:
            if facts["id"] == payload["version"]:
                payload["chunks"] -= 1
                payload["tokens"] -= facts["tokens"]
    return Point(document.id, payload)


def accepted_text(pages: Sequence[Page]) -> str:
    """The text that chunk offsets count in."""
    ordered = sorted(pages, key=lambda page: page.number)
    return join_pages(page.text for page in ordered)


def version_of(document: Document, pages: Sequence[Page], chunks: Sequence[Chunk]) -> str:
    """A name for exactly this content in this generation: `generation-hash`."""
    content = json.dumps([accepted_text(pages), [[str(c.id), _facts(c)] for c in chunks]])
    return f"{document.generation}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def text_point_ids(document_id: UUID, version: str, parts: int) -> list[UUID]:
    """The ids of the slices of a version's accepted text, in order."""
    return [uuid5(document_id, f"{version} {part}") for part in range(parts)]


def text_points(document: Document, version: str, pages: Sequence[Page]) -> list[Point]:
    """The slices of a version's accepted text."""
    parts = _parts(accepted_text(pages))
    ids = text_point_ids(document.id, version, len(parts))
    scope = _scope(document, "text")
    return [
        Point(id_, scope | {"versions": [{"id": version}], "text": part})
        for id_, part in zip(ids, parts, strict=True)
    ]


def chunk_point(
    document: Document,
    version: str,
    chunk: Chunk,
    unit: NDArray[np.float32],
    current: Iterable[Payload] = (),
) -> Point:
    """The chunk's point with its unit vector float32 [dimensions].

    `current` is what the point says of the version that is still the current one, if anything.
    """
    payload = _scope(document, "chunk") | {
        "text_sha256": chunk.sha256,
        "versions": [*current, {"id": version} | _facts(chunk)],
    }
    return Point(chunk.id, payload, unit.tolist(), sparse_of(chunk.embedded_text))


def has_version(payload: Payload, version: str | None) -> bool:
    """Whether the chunk or text belongs to this version of its document."""
    return any(facts["id"] == version for facts in payload["versions"])


def chunk_from(record: Record, version: str) -> Chunk:
    """The chunk of a point, as it is in this version of its document."""
    [facts] = [dict(facts) for facts in record.payload["versions"] if facts["id"] == version]
    facts |= {
        "id": record.id,
        "document_id": UUID(record.payload["document_id"]),
        "heading_path": tuple(facts["heading_path"]),
        "boxes": tuple(PageBox(page, BBox(*box)) for page, *box in facts["boxes"]),
    }
    return Chunk(**facts)


def fact_from(record: Record) -> PointFact:
    """What verification compares of a chunk's point."""
    document_id, generation, text_sha256 = (record.payload[name] for name in FACT_FIELDS)
    return PointFact(UUID(document_id), generation, text_sha256)


def newest_text(payload: Payload) -> str:
    """The text that a chunk's vector was made of."""
    facts = payload["versions"][-1]
    return f"{facts['prefix']}\n{facts['text']}" if facts["prefix"] else str(facts["text"])


def sparse_of(text: str) -> Sparse | None:
    """The BM25 weights of a text's terms without the IDF, which Qdrant knows; None without terms.

    The form is that of `bm25.score`, with MEAN_TERMS as the mean length.
    """
    counts = Counter(terms(text))
    length = counts.total()
    weights: dict[int, float] = {}
    for term, count in counts.items():
        weight = bm25.score({term: 1.0}, {term: count}, length, MEAN_TERMS)
        # Two terms that share an index, one pair in four thousand million, share its weight.
        weights[_index(term)] = weights.get(_index(term), 0.0) + weight
    return Sparse(list(weights), list(weights.values())) if weights else None


def sparse_query(text: str) -> Sparse | None:
    """The terms of a query, each once; None without terms."""
    indices = sorted({_index(term) for term in terms(text)})
    return Sparse(indices, [1.0] * len(indices)) if indices else None


@lru_cache(maxsize=65536)
def _index(term: str) -> int:
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big")


def _scope(document: Document, kind: str) -> Payload:
    return {
        "kind": kind,
        "tenant": document.tenant,
        "corpus": document.corpus,
        "document_id": str(document.id),
        "generation": document.generation,
    }


def _facts(chunk: Chunk) -> dict[str, Any]:
    names = (
        "ordinal",
        "text",
        "prefix",
        "first_page",
        "last_page",
        "start",
        "end",
        "tokens",
        "sha256",
    )
    return {name: getattr(chunk, name) for name in names} | {
        "heading_path": list(chunk.heading_path),
        "boxes": [[box.page, *box.bbox] for box in chunk.boxes],
    }


def _parts(text: str) -> list[str]:
    return [
        text[start : start + TEXT_PART_CHARACTERS]
        for start in range(0, len(text), TEXT_PART_CHARACTERS)
    ]
