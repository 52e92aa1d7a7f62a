"""What one request asks of an encoder, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragplane.core.tokens import TruncationDirection
from serve.backend import TokenIds
from serve.batching.work import Done


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Texts or token ids to embed. None means "as the model's files or the settings say".

    `deadline_s` is on the `time.monotonic` clock.
    """

    inputs: Sequence[str | TokenIds]
    prompt: str = ""
    normalize: bool | None = None
    dimensions: int | None = None
    truncate: bool | None = None
    direction: TruncationDirection = "right"
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """Texts to score against a query. `max_text_tokens` cuts each text, special tokens included."""

    query: str
    texts: Sequence[str]
    truncate: bool | None = None
    direction: TruncationDirection = "right"
    max_text_tokens: int | None = None
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the time of one request went. Waiting for its own earlier batches is inference."""

    tokenization_ms: float = 0.0
    queue_ms: float = 0.0
    inference_ms: float = 0.0

    def plus(self, done: Sequence[Done[Any]]) -> Timings:
        """With one run of the batcher: until its first batch started, and from then to the end."""
        if not done:
            return self
        queue_ms = min(item.queue_ms for item in done)
        end_ms = max(item.queue_ms + item.inference_ms for item in done)
        return Timings(
            self.tokenization_ms,
            self.queue_ms + queue_ms,
            self.inference_ms + end_ms - queue_ms,
        )
