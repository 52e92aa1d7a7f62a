"""Names that never change: the same document and the same chunk have the same id on every run."""

from __future__ import annotations

import hashlib
from uuid import UUID, uuid5

CHUNKER_VERSION = "2"
_NAMESPACE = UUID("6f1d3b52-6c1e-4d0a-9a53-0b6a3c1f7e44")


def document_id(tenant: str, corpus: str, source: str) -> UUID:
    """Id of the document at `source` (a URI)."""
    return _name(tenant, corpus, source)


def chunk_id(tenant: str, corpus: str, document: UUID, ordinal: int, sha256: str) -> UUID:
    """Id of a chunk by its place and content (RFC 9562, version 5)."""
    return _name(tenant, corpus, str(document), str(ordinal), sha256, CHUNKER_VERSION)


def text_sha256(text: str) -> str:
    """Hash of a text, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _name(*parts: str) -> UUID:
    # A length before each part keeps ("a", "bc") and ("ab", "c") apart.
    return uuid5(_NAMESPACE, "".join(f"{len(part)}:{part}" for part in parts))
