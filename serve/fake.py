"""An `Encoder` without a model, for unit tests: deterministic, instant, and useful for ranking."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ragplane.core.errors import EmptyInputError
from serve.encoder import Embeddings, InputType, RerankScores, Vectors

_WORD = re.compile(r"\w+")
_SPECIAL_TOKENS = 2
_VOCABULARY = 30_000


class FakeEncoder:
    """Hashed bags of words. Two texts are as close as their shared words; a word is one token."""

    def __init__(self, *, dimensions: int = 64, max_tokens: int = 256) -> None:
        """Vectors have `dimensions`; texts are cut to `max_tokens`, two special tokens included."""
        self.dimensions = dimensions
        self.max_tokens = max_tokens

    async def embed(
        self, texts: Sequence[str], *, input_type: InputType = "document"
    ) -> Embeddings:
        """Unit vectors of word counts. Both input types share one space, as without prompts."""
        words = [self._words(text) for text in texts]
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, kept in zip(vectors, words, strict=True):
            _fill(row, kept)
        return Embeddings(vectors, self._tokens(words), self._cut(texts))

    async def embed_sparse(self, texts: Sequence[str]) -> list[Mapping[int, float]]:
        """Word counts under a hashed vocabulary id."""
        return [
            {_hash(word) % _VOCABULARY: float(n) for word, n in Counter(self._words(text)).items()}
            for text in texts
        ]

    async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores:
        """The share of the query's distinct words that a text holds, from 0 to 1."""
        asked = set(_split(query))
        words = [self._words(text) for text in texts]
        scores = tuple(len(asked & set(kept)) / max(1, len(asked)) for kept in words)
        tokens = self._tokens(words) + len(_split(query)) + _SPECIAL_TOKENS
        return RerankScores(scores, tokens, self._cut(texts))

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words, plus two special tokens."""
        return [len(_WORD.findall(text)) + _SPECIAL_TOKENS for text in texts]

    async def fingerprint(self) -> str:
        """Differs between fakes of different shapes."""
        return f"fake-{self.dimensions}-{self.max_tokens}"

    async def aclose(self) -> None:
        """Nothing to release."""

    def _words(self, text: str) -> list[str]:
        return _split(text)[: self.max_tokens - _SPECIAL_TOKENS]

    def _tokens(self, words: Sequence[Sequence[str]]) -> int:
        return sum(len(kept) + _SPECIAL_TOKENS for kept in words)

    def _cut(self, texts: Sequence[str]) -> int:
        return sum(len(_split(text)) > self.max_tokens - _SPECIAL_TOKENS for text in texts)


def _split(text: str) -> list[str]:
    if not text:
        raise EmptyInputError("a text is empty")
    return [word.lower() for word in _WORD.findall(text)]


def _hash(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


def _fill(row: Vectors, words: Sequence[str]) -> None:
    """Count `words` into `row` and normalise it; without words it points along the first axis."""
    for word in words:
        row[_hash(word) % len(row)] += 1.0
    if not words:
        row[0] = 1.0
    row /= np.linalg.norm(row)
