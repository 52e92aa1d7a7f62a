"""sentence-transformers in fp32, as its users call it: encode, and CrossEncoder.predict."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from lines import answer
from sentence_transformers import CrossEncoder, SentenceTransformer

_BATCH = 32


def main() -> None:
    """Load the embedding model of argv[1], then answer."""
    model = SentenceTransformer(sys.argv[1], device="cpu")
    model.encode(["warm up"] * _BATCH)
    load_cross_encoder = cache(lambda folder: CrossEncoder(folder, device="cpu"))

    def encode(texts: Sequence[str], vectors_to: str | None = None) -> dict[str, Any]:
        started = time.perf_counter()
        vectors = model.encode(
            list(texts), batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False
        )
        seconds = time.perf_counter() - started
        if vectors_to is not None:
            np.save(vectors_to, vectors)
        return {"seconds": seconds}

    def predict(folder: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
        cross_encoder = load_cross_encoder(folder)
        started = time.perf_counter()
        scores = cross_encoder.predict(
            [(query, text) for text in texts], batch_size=_BATCH, show_progress_bar=False
        )
        return {"seconds": time.perf_counter() - started, "scores": [float(s) for s in scores]}

    answer({"encode": encode, "predict": predict})


if __name__ == "__main__":
    main()
