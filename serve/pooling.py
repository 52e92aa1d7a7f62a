"""From token vectors to what is asked for: one vector, or a relevance score. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragplane.core.errors import LimitError, NonFiniteError
from ragplane.core.models import Pooling
from serve.encoder import Vectors

_MIN_NORM = 1e-12


def pool(tokens: Vectors, pooling: Pooling) -> Vectors:
    """One vector [hidden] from the token vectors [length, hidden] of one unpadded input."""
    pooled: Vectors = tokens[0] if pooling == "cls" else tokens.mean(axis=0, dtype=np.float32)
    return pooled


def normalize(vectors: Vectors) -> Vectors:
    """Scale the last axis to length 1. A zero vector stays zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = (vectors / np.maximum(norms, _MIN_NORM)).astype(np.float32, copy=False)
    return scaled


def check_dimensions(wanted: int | None, available: int) -> None:
    """Raise LimitError unless `wanted` is None or within 1 to `available`."""
    if wanted is not None and not 1 <= wanted <= available:
        message = f"dimensions must be from 1 to {available}, not {wanted}"
        raise LimitError(message, param="dimensions")


def content_rows(tokens: Vectors, special: Sequence[bool]) -> Vectors:
    """The token vectors that are not special tokens, [content, hidden]."""
    content: Vectors = tokens[~np.asarray(special, dtype=bool)]
    return content


def max_sim(query: Vectors, document: Vectors) -> float:
    """Late interaction (ColBERT): how well each query token is matched, on average, from -1 to 1.

    Both are unit token vectors, [query tokens, hidden] and [document tokens, hidden].
    """
    return float((query @ document.T).max(axis=1).mean())


def require_finite(vectors: Vectors) -> Vectors:
    """`vectors` as they are. Raises NonFiniteError if any value is NaN or infinite."""
    if not np.isfinite(vectors).all():
        raise NonFiniteError
    return vectors
