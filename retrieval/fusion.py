"""Weighted reciprocal rank fusion (Cormack, Clarke, Buettcher 2009). A pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

_RANK_CONSTANT = 60.0


def fuse(
    rankings: Mapping[str, Sequence[UUID]], weights: Mapping[str, float]
) -> list[tuple[UUID, float]]:
    """Chunk ids with their fused scores, best first, ties by id.

    Each ranking is one leg, best first; a leg of weight 0 is left out. Scores are scaled by the
    sum of the weights of the legs that found anything, so that a missing leg does not lower a
    score.
    """
    legs = {name: ids for name, ids in rankings.items() if ids and weights.get(name, 0.0) > 0}
    total = sum(weights[name] for name in legs)
    scores: dict[UUID, float] = {}
    for name, ids in legs.items():
        for rank, chunk_id in enumerate(ids, start=1):
            gain = weights[name] / total / (_RANK_CONSTANT + rank)
            scores[chunk_id] = scores.get(chunk_id, 0.0) + gain
    return sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))
