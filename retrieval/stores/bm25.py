"""BM25 (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework"), as pure functions.

The inverse document frequency is the form that is never negative:
ln(1 + (N - df + 0.5) / (df + 0.5)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

K1 = 1.2
B = 0.75


def idf(chunks: int, containing: int) -> float:
    """The weight of a term that `containing` of the corpus's `chunks` contain."""
    return math.log1p((chunks - containing + 0.5) / (containing + 0.5))


def score(
    weights: Mapping[str, float],
    counts: Mapping[str, int],
    length: int,
    mean_length: float,
) -> float:
    """The score of one chunk, 0 or more.

    `weights` holds the idf of each query term, `counts` how often the chunk has each of its terms;
    `length` and `mean_length` count terms with repeats. The sum is exact, so that the order of the
    terms changes nothing.
    """
    norm = K1 * (1 - B + B * length / mean_length) if mean_length else K1
    return math.fsum(
        weight * count * (K1 + 1) / (count + norm)
        for term, weight in weights.items()
        if (count := counts.get(term, 0))
    )
