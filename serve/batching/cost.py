"""What a batch costs, in tokens, and how long that takes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# How much a pass of so many tokens or more counts; smaller ones tell little, and count less.
_NEWEST_SHARE, _TELLING_TOKENS = 0.2, 1024
# The least part of a pass that is put down to its tokens, however much it should cost by itself.
_LEAST_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class CostModel:
    """Cost of a forward pass in tokens of the shortest kind, fitted to this host.

    A packed backend pays for the sum of the lengths, a padded one for the longest times the size.
    Attention adds to that: an input of `attention_tokens` costs twice what its tokens alone would.
    `fixed_s` is what any pass takes on top.
    """

    packed: bool
    attention_tokens: float = math.inf
    fixed_s: float = 0.0

    def tokens(self, lengths: Sequence[int]) -> float:
        """Cost of one pass over inputs of these lengths."""
        if not self.packed:
            return self._padded(max(lengths, default=0), len(lengths))
        return self.apart(lengths)

    def apart(self, lengths: Sequence[int]) -> float:
        """Cost of inputs of these lengths, whatever batches they end up in."""
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

    def __init__(self, tokens_per_s: float, fixed_s: float = 0.0) -> None:
        """Start from what calibration measured: the speed, and `fixed_s` of any pass."""
        self._tokens_per_s = tokens_per_s
        self._fixed_s = fixed_s

    def record(self, cost_tokens: float, seconds: float) -> None:
        """Take one forward pass into the average."""
        moving_s = max(seconds - self._fixed_s, _LEAST_SHARE * seconds, 1e-6)
        share = _NEWEST_SHARE * min(1.0, cost_tokens / _TELLING_TOKENS)
        self._tokens_per_s += share * (cost_tokens / moving_s - self._tokens_per_s)

    def seconds_for(self, cost_tokens: float) -> float:
        """Expected duration of a pass."""
        return self._fixed_s + cost_tokens / self._tokens_per_s
