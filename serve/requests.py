"""What one request asks of a model, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ragplane.core.tokens import TruncationDirection
from serve.backends.base import TokenIds
from serve.batching.work import Done, Terms

Single = tuple[str]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeRequest:
    """Texts or token ids to encode. None means "as the model's files or the settings say"."""

    inputs: Sequence[str | TokenIds]
    prompt: str = ""
    truncate: bool | None = None
    direction: TruncationDirection = "right"
    terms: Terms = field(default_factory=Terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedRequest(EncodeRequest):
    """Inputs to embed, one vector each."""

    normalize: bool | None = None
    dimensions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRequest:
    """Texts to score against a query.

    `max_text_tokens` cuts each text: its own tokens, not those of the query. `raw_scores` gives
    logits where the model has an activation.
    """

    query: str
    texts: Sequence[str]
    truncate: bool | None = None
    direction: TruncationDirection = "right"
    max_text_tokens: int | None = None
    raw_scores: bool = False
    terms: Terms = field(default_factory=Terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRequest:
    """Inputs to classify: one text each, or a pair."""

    inputs: Sequence[Single | Pair]
    truncate: bool | None = None
    direction: TruncationDirection = "right"
    raw_scores: bool = False
    terms: Terms = field(default_factory=Terms)


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
