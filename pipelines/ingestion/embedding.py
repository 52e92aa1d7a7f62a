"""Vectors of chunks: from the cache where the text is known, from the encoder otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ingest.identity import text_sha256
from ingest.ledger.base import VectorCache
from pipelines.ingestion.patience import PartDownError, patiently
from ragplane.core.errors import InputError, NonFiniteError, RagplaneError, StageError, describe
from ragplane.core.schema import Chunk
from serve.encoder import Encoder

_BATCH = 64


class Embedder:
    """Embeds for one corpus. Made by `open`; safe for many tasks."""

    def __init__(
        self,
        encoder: Encoder,
        cache: VectorCache,
        *,
        fingerprint: str,
        dimensions: int,
        patience_s: float,
    ) -> None:
        self.fingerprint = fingerprint
        self.dimensions = dimensions
        self._encoder = encoder
        self._cache = cache
        self._patience_s = patience_s

    @classmethod
    async def open(cls, encoder: Encoder, cache: VectorCache, patience_s: float) -> Embedder:
        """Ask the encoder what it is. Raises PartDownError if it stays down."""

        async def probe() -> tuple[str, int]:
            vectors = (await encoder.embed(["probe"])).vectors
            return await encoder.fingerprint(), vectors.shape[1]

        try:
            fingerprint, dimensions = await patiently(probe, "embed", patience_s)
        except StageError:
            raise
        except RagplaneError as error:
            raise PartDownError("embed", describe(error)) from error
        return cls(
            encoder, cache, fingerprint=fingerprint, dimensions=dimensions, patience_s=patience_s
        )

    async def embed(self, chunks: Sequence[Chunk]) -> NDArray[np.float32]:
        """Vectors, float32 [len(chunks), dimensions].

        Raises StageError `embed` for a text that the encoder refuses or cuts, PartDownError if
        it stays down.
        """
        hashes = [text_sha256(chunk.embedded_text) for chunk in chunks]
        known = await patiently(
            lambda: self._cache.get(self.fingerprint, set(hashes)), "store", self._patience_s
        )
        texts = {
            sha256: chunk.embedded_text
            for sha256, chunk in zip(hashes, chunks, strict=True)
            if sha256 not in known
        }
        fresh = await self._encode(texts)
        vectors = np.zeros((len(chunks), self.dimensions), np.float32)
        for row, sha256 in zip(vectors, hashes, strict=True):
            row[:] = known[sha256] if sha256 in known else fresh[sha256]
        return vectors

    async def _encode(self, texts: dict[str, str]) -> dict[str, NDArray[np.float32]]:
        """In batches, each kept as soon as it is there: a run that stops repeats none."""
        fresh: dict[str, NDArray[np.float32]] = {}
        hashes = list(texts)
        for start in range(0, len(hashes), _BATCH):
            batch = hashes[start : start + _BATCH]
            vectors = await self._ask([texts[sha256] for sha256 in batch])
            made = dict(zip(batch, vectors, strict=True))
            keep = partial(self._cache.put, self.fingerprint, made)
            await patiently(keep, "store", self._patience_s)
            fresh |= made
        return fresh

    async def _ask(self, texts: Sequence[str]) -> NDArray[np.float32]:
        try:
            embedded = await patiently(
                lambda: self._encoder.embed(texts), "embed", self._patience_s
            )
        except (InputError, NonFiniteError) as error:
            raise StageError("embed", describe(error)) from error
        except StageError:
            raise
        except RagplaneError as error:
            raise PartDownError("embed", describe(error)) from error
        if embedded.truncated_inputs:
            raise StageError("embed", f"the encoder cut {embedded.truncated_inputs} chunks")
        return embedded.vectors
