"""What a batch costs, in tokens, and how long that takes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_NEWEST_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class CostModel:
    """Cost of a forward pass in tokens of the shortest kind, fitted to this host.

    A packed backend pays for the sum of the lengths, a padded one for the longest times the size.
    Attention adds to that: an input of `attention_tokens` costs twice what its tokens alone would.
    """

    packed: bool
    attention_tokens: float = math.inf

    def tokens(self, lengths: Sequence[int]) -> float:
        """Cost of one pass over inputs of these lengths."""
        if not self.packed:
            return self._padded(max(lengths, default=0), len(lengths))
        return sum(self._padded(length, 1) for length in lengths)

    def grown(self, cost_tokens: float, longest: int, size: int, length: int) -> float:
        """Cost of a batch of `cost_tokens` (`size` inputs up to `longest`) with one more input."""
        if self.packed:
            return cost_tokens + self._padded(length, 1)
        return self._padded(max(longest, length), size + 1)

    def _padded(self, length: int, size: int) -> float:
        return length * size * (1.0 + length / self.attention_tokens)


class Speed:
    """How fast the backend is: a moving average over what it really ran."""

    def __init__(self, tokens_per_s: float | None = None) -> None:
        """Start from a measured figure, or from none."""
        self.tokens_per_s = tokens_per_s

    def record(self, cost_tokens: float, seconds: float) -> None:
        """Take one forward pass into the average."""
        measured = cost_tokens / max(seconds, 1e-6)
        known = self.tokens_per_s
        self.tokens_per_s = (
            measured if known is None else known + _NEWEST_SHARE * (measured - known)
        )

    def seconds_for(self, cost_tokens: float) -> float:
        """Expected duration; 0 as long as nothing was measured."""
        return cost_tokens / self.tokens_per_s if self.tokens_per_s else 0.0
