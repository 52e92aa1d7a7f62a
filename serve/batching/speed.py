"""How fast the backend is, measured on what it really ran."""

from __future__ import annotations

_NEWEST_SHARE = 0.2


class Speed:
    """A moving average of padded tokens per second."""

    def __init__(self) -> None:
        self.tokens_per_s: float | None = None

    def record(self, tokens: int, seconds: float) -> None:
        """Take one forward pass into the average."""
        measured = tokens / max(seconds, 1e-6)
        known = self.tokens_per_s
        self.tokens_per_s = (
            measured if known is None else known + _NEWEST_SHARE * (measured - known)
        )

    def seconds_for(self, tokens: int) -> float:
        """Expected duration of `tokens`; 0 as long as nothing was measured."""
        return tokens / self.tokens_per_s if self.tokens_per_s else 0.0
