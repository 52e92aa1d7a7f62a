"""The one seam for "something that encodes", in this process or behind HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

InputType = Literal["query", "document"]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Dense vectors, float32 [n, dimensions], in input order; tokens spent; inputs cut."""

    vectors: Vectors
    tokens: int
    truncated_inputs: int


@dataclass(frozen=True, slots=True)
class SparseEmbeddings:
    """Term weights (vocabulary id -> weight, none of them 0) of each input; tokens; inputs cut."""

    weights: tuple[Mapping[int, float], ...]
    tokens: int
    truncated_inputs: int


@dataclass(frozen=True, slots=True)
class TokenEmbeddings:
    """Token vectors [length, hidden] of each input, special tokens included; tokens; inputs cut."""

    vectors: tuple[Vectors, ...]
    tokens: int
    truncated_inputs: int


@dataclass(frozen=True, slots=True)
class Predictions:
    """One row of label scores, float32 [n, labels], for each input; tokens; inputs cut."""

    scores: Vectors
    tokens: int
    truncated_inputs: int


@dataclass(frozen=True, slots=True)
class RerankScores:
    """One relevance score for each text, in input order; tokens spent; texts that were cut."""

    scores: tuple[float, ...]
    tokens: int
    truncated_inputs: int

    def ranking(self) -> list[int]:
        """Indices of the texts, best first; ties stay in input order."""
        return sorted(range(len(self.scores)), key=lambda index: -self.scores[index])


class Encoder(Protocol):
    """Embeds, reranks and counts.

    Every method may raise ModelError, OverloadedError or UnavailableError.
    """

    async def embed(
        self, texts: Sequence[str], *, input_type: InputType = "document"
    ) -> Embeddings:
        """Dense vectors of `texts`. The model's own prompt for `input_type` is put in front."""
        ...

    async def embed_sparse(self, texts: Sequence[str]) -> list[Mapping[int, float]]:
        """Term weights (vocabulary id -> weight). ModelError for a model without a sparse head."""
        ...

    async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores:
        """Relevance of each text to `query`; higher is better. Texts are cut, the query never."""
        ...

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens included."""
        ...

    async def fingerprint(self) -> str:
        """Short hash of everything that shapes the vector space."""
        ...

    async def aclose(self) -> None:
        """Release threads and connections."""
        ...
