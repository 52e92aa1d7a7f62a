"""How far the recognised text of a page can be trusted."""

from __future__ import annotations

from collections.abc import Iterable


def page_confidence(lines: Iterable[tuple[int, float]]) -> float | None:
    """The mean confidence of lines, each weighed by its characters; None without any."""
    weighed = list(lines)
    characters = sum(length for length, _ in weighed)
    if not characters:
        return None
    return sum(length * confidence for length, confidence in weighed) / characters
