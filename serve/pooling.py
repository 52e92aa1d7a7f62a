"""From what a backend gives for one input to what is asked for: pure functions on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ragplane.core.errors import LimitError, ModelError, NonFiniteError
from ragplane.core.models import Activation, Pooling
from serve.encoder import Vectors

_MIN_NORM = 1e-12
_LARGEST_EXPONENT = 87.0  # the exponential of 89 is no float32


def pool(tokens: Vectors, pooling: Pooling) -> Vectors:
    """One vector [hidden] of its own from the token vectors [length, hidden] of one unpadded input.

    It is NaN if any token vector is not finite, also where the pooling leaves that one out. Raises
    ModelError for `splade`, which pools logits and not token vectors.
    """
    if pooling == "splade":
        raise ModelError("pooling splade gives no dense vector")
    if not np.isfinite(tokens).all():
        return np.full(tokens.shape[1], np.nan, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # a sum that is no float32 is not finite
        return np.array(_POOLINGS[pooling](tokens), np.float32)


def normalize(vectors: Vectors) -> Vectors:
    """Scale the last axis to length 1. A zero vector stays zero."""
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if not np.isfinite(norms).all():  # the squares are no float32
        norms = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
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


def activate(logits: Vectors, activation: Activation) -> Vectors:
    """Scores from logits [..., labels], over the last axis for softmax. Never overflows."""
    if activation == "identity":
        return logits
    return sigmoid(logits) if activation == "sigmoid" else _softmax(logits)


def sigmoid(values: Vectors) -> Vectors:
    """1 / (1 + exp(-x)) of each value; exact to float32 where the exponential would overflow."""
    powers = np.exp(-np.maximum(values, np.float32(-_LARGEST_EXPONENT)))
    return np.asarray(1 / (1 + powers), np.float32)


def sparse_weights(row: Vectors) -> dict[int, float]:
    """Term weights [vocabulary] as vocabulary id -> weight, without the zeros."""
    (terms,) = np.nonzero(row)
    return dict(zip(terms.tolist(), row[terms].tolist(), strict=True))


def _softmax(values: Vectors) -> Vectors:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float32)


def _weighted_mean(tokens: Vectors) -> Vectors:
    """The position is the weight, from 1 (SGPT, arXiv 2202.08904)."""
    weights = np.arange(1, len(tokens) + 1, dtype=np.float32)
    return np.asarray(weights @ tokens / weights.sum())


_POOLINGS: Mapping[Pooling, Callable[[Vectors], Vectors]] = {
    "cls": lambda tokens: tokens[0],
    "last-token": lambda tokens: tokens[-1],
    "max": lambda tokens: tokens.max(axis=0),
    "mean": lambda tokens: tokens.mean(axis=0),
    "mean-sqrt-length": lambda tokens: tokens.sum(axis=0) / np.sqrt(len(tokens)),
    "weighted-mean": _weighted_mean,
}
