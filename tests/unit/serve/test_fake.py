"""The fake encoder ranks as a test would expect."""

from __future__ import annotations

import numpy as np
import pytest

from ragplane.core.errors import EmptyInputError
from serve.encoder import Encoder
from serve.fake import FakeEncoder


async def test_fake_encoder_is_deterministic_and_ranks_shared_words_first() -> None:
    encoder: Encoder = FakeEncoder(dimensions=128)
    first = await encoder.embed(["the cat sat", "a cat sat there", "stock prices fell"])
    again = await encoder.embed(["the cat sat"], input_type="query")
    np.testing.assert_array_equal(first.vectors[0], again.vectors[0])
    np.testing.assert_allclose(np.linalg.norm(first.vectors, axis=1), 1, atol=1e-6)
    similarity = first.vectors @ again.vectors[0]
    assert similarity[1] > similarity[2]
    scores = await encoder.rerank("cat prices", ["Prices fell", "cat and prices", "dogs"])
    assert scores.ranking() == [1, 0, 2]


async def test_fake_encoder_counts_and_cuts() -> None:
    encoder = FakeEncoder(max_tokens=5)
    assert await encoder.count_tokens(["one two", "", "a b c d"]) == [4, 2, 6]
    cut = await encoder.embed(["a b c d", "a b c"])
    assert cut.truncated_inputs == 1
    assert cut.tokens == 10
    np.testing.assert_array_equal(cut.vectors[0], cut.vectors[1])
    assert sum((await encoder.embed_sparse(["a b b"]))[0].values()) == 3
    with pytest.raises(EmptyInputError):
        await encoder.embed([""])
