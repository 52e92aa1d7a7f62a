"""Which of the waiting inputs run next. A pure function over a snapshot of the queue."""

from __future__ import annotations

from collections.abc import Sequence


def padded_tokens(lengths: Sequence[int]) -> int:
    """What a padded backend pays for a batch: its longest input times its size."""
    return max(lengths, default=0) * len(lengths)


def compose(lengths: Sequence[int], *, budget_tokens: int) -> list[int]:
    """Indices of the next micro-batch, from the lengths of what waits, oldest first.

    The oldest always runs, so nothing starves, and the nearest lengths join it while the padded
    cost stays within `budget_tokens`. An oldest input over the budget runs alone.
    """
    if not lengths:
        return []
    anchor = lengths[0]
    nearest = sorted(range(len(lengths)), key=lambda index: (abs(lengths[index] - anchor), index))
    chosen: list[int] = []
    longest = 0
    for index in nearest:
        longest = max(longest, lengths[index])
        if chosen and longest * (len(chosen) + 1) > budget_tokens:
            break
        chosen.append(index)
    return chosen
