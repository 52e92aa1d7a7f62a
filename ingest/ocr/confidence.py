"""How far the recognised text of a page can be trusted, as two figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_TAIL_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class PageConfidence:
    """From 0 to 1, weighed by characters. `low_tail` is the mean of the worst tenth of the text:
    a page may read well and yet have lost its handwriting or its table.
    """

    mean: float
    low_tail: float


def page_confidence(lines: Iterable[tuple[str, float]]) -> PageConfidence | None:
    """The confidence of a page from the text and confidence of its lines; None without text."""
    weighed = sorted((confidence, len(text)) for text, confidence in lines if text)
    characters = sum(length for _, length in weighed)
    if not characters:
        return None
    mean = sum(confidence * length for confidence, length in weighed) / characters
    tail = _TAIL_SHARE * characters
    taken = low = 0.0
    for confidence, length in weighed:
        share = min(length, tail - taken)
        low += confidence * share
        taken += share
    return PageConfidence(mean, low / tail)
