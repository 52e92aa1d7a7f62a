"""The real model in process: numbers, invariance, truncation, late interaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from ragplane.core.config import Settings
from ragplane.core.errors import EmptyInputError, LimitError, ModelError, TokenizerError
from ragplane.core.models import locate
from serve.encoder import Encoder, Vectors
from serve.local import LocalEncoder
from serve.requests import EmbedRequest, RerankRequest

WORDS = "river bank money loan water fish boat tax law court judge song piano key lock door".split()
TEXTS = [" ".join(WORDS[(n + k) % 16] for k in range(1 + n * 7 % 90)) for n in range(64)]


@pytest.fixture(scope="module")
def reference() -> Vectors:
    """sentence-transformers' recipe on torch: mean over the mask, then unit length."""
    folder = locate("bundled")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        state = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    pooled = (state * mask).sum(1) / mask.sum(1)
    vectors: Vectors = torch.nn.functional.normalize(pooled).numpy()
    return vectors


@pytest.mark.parametrize("count", [1, 7, 64])
async def test_vectors_equal_the_reference(
    encoder: LocalEncoder, reference: Vectors, count: int
) -> None:
    got = await encoder.embed(TEXTS[:count])
    assert (got.vectors * reference[:count]).sum(axis=1).min() >= 0.9999
    assert got.truncated_inputs == 0
    assert got.tokens == sum(await encoder.count_tokens(TEXTS[:count]))


async def test_a_vector_does_not_depend_on_its_batch(encoder: LocalEncoder) -> None:
    together = (await encoder.embed(TEXTS)).vectors
    alone = [(await encoder.embed([text])).vectors[0] for text in TEXTS[::9]]
    assert np.abs(together[::9] - np.stack(alone)).max() <= 1e-5


async def test_concurrent_requests_get_their_own_answers(encoder: LocalEncoder) -> None:
    together = (await encoder.embed(TEXTS)).vectors
    replies = await asyncio.gather(*(encoder.embed([text, TEXTS[0]]) for text in TEXTS[:20]))
    got = np.stack([reply.vectors[0] for reply in replies])
    assert np.abs(together[:20] - got).max() <= 1e-5


async def test_cut_dimensions_are_renormalised(encoder: LocalEncoder) -> None:
    """Behaviour 17."""
    whole = (await encoder.embed(["a boat"])).vectors[0]
    cut, _ = await encoder.run_embed(
        encoder.registry.any(), EmbedRequest(inputs=["a boat"], dimensions=64)
    )
    np.testing.assert_allclose(
        cut.vectors[0], whole[:64] / np.linalg.norm(whole[:64]), rtol=0, atol=1e-6
    )
    raw, _ = await encoder.run_embed(
        encoder.registry.any(), EmbedRequest(inputs=["a boat"], normalize=False)
    )
    assert abs(np.linalg.norm(raw.vectors[0]) - 1) > 1e-3


async def test_token_ids_are_used_as_they_are(encoder: LocalEncoder) -> None:
    (tokens,) = encoder.registry.any().tokenizer.encode(["a boat"])
    both, _ = await encoder.run_embed(
        encoder.registry.any(), EmbedRequest(inputs=["a boat", tokens.ids])
    )
    np.testing.assert_array_equal(both.vectors[0], both.vectors[1])


async def test_long_texts_are_cut_on_the_side_that_is_named(encoder: LocalEncoder) -> None:
    head, tail = "boat " * 254, "court " * 254
    for direction, kept in (("right", head), ("left", tail)):
        request = EmbedRequest(inputs=[head + tail], direction=direction)
        cut, _ = await encoder.run_embed(encoder.registry.any(), request)
        assert (cut.truncated_inputs, cut.tokens) == (1, 256)
        expected = (await encoder.embed([kept])).vectors
        assert np.abs(cut.vectors - expected).max() <= 1e-5
    with pytest.raises(LimitError, match="510 tokens"):
        await encoder.run_embed(
            encoder.registry.any(), EmbedRequest(inputs=[head + tail], truncate=False)
        )


@pytest.mark.parametrize(
    ("inputs", "error"),
    [
        (["fine", ""], EmptyInputError),
        ([()], EmptyInputError),
        ([(101, 30522)], LimitError),
        ([(-1,)], LimitError),
        (["\ud800"], TokenizerError),
    ],
)
async def test_unusable_inputs_are_refused(
    encoder: LocalEncoder, inputs: Sequence[str | tuple[int, ...]], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await encoder.run_embed(encoder.registry.any(), EmbedRequest(inputs=inputs))


async def test_no_texts_give_no_vectors(encoder: LocalEncoder) -> None:
    assert (await encoder.embed([])).vectors.shape == (0, 384)
    assert (await encoder.rerank("query", [])).scores == ()


async def test_rerank_finds_the_answer(encoder: LocalEncoder) -> None:
    texts = ["Dogs bark at night.", "Paris is the capital of France.", "Dogs bark at night."]
    scores = await encoder.rerank("What is the capital of France?", texts)
    assert scores.ranking() == [1, 0, 2]  # the tie stays in input order
    assert all(-1 <= score <= 1 for score in scores.scores)


async def test_a_score_does_not_depend_on_the_other_texts(encoder: LocalEncoder) -> None:
    query = "a court rules on tax"
    together = (await encoder.rerank(query, TEXTS)).scores
    alone = [(await encoder.rerank(query, [text])).scores[0] for text in TEXTS[::9]]
    assert np.abs(np.array(together[::9]) - alone).max() <= 1e-5


async def test_rerank_cuts_texts_and_not_the_query(encoder: LocalEncoder) -> None:
    long = "water " * 400
    request = RerankRequest(query="water", texts=[long, "money"])
    scores, _ = await encoder.run_rerank(encoder.registry.any(), request)
    assert scores.truncated_inputs == 1
    bounded, _ = await encoder.run_rerank(
        encoder.registry.any(), replace(request, max_text_tokens=100)
    )
    assert bounded.tokens == 3 + 102 + 3
    loose, _ = await encoder.run_rerank(
        encoder.registry.any(), replace(request, max_text_tokens=100_000)
    )
    assert loose.scores == pytest.approx(scores.scores, abs=1e-6)
    with pytest.raises(LimitError, match="at least 1"):
        await encoder.run_rerank(encoder.registry.any(), replace(request, max_text_tokens=0))
    with pytest.raises(LimitError, match="text 0 has 402"):
        await encoder.run_rerank(encoder.registry.any(), replace(request, truncate=False))
    cut, _ = await encoder.run_rerank(
        encoder.registry.any(), RerankRequest(query=long, texts=["water"])
    )
    assert cut.truncated_inputs == 1


async def test_a_query_without_words_is_refused(encoder: LocalEncoder) -> None:
    with pytest.raises(EmptyInputError, match="no words"):
        await encoder.rerank("  ", ["text"])


async def test_one_model_for_both_is_loaded_once(encoder: LocalEncoder) -> None:
    assert len(encoder.models) == 1
    assert len(await encoder.fingerprint()) == 16
    checked: Encoder = encoder
    with pytest.raises(ModelError, match="sparsely"):
        await checked.embed_sparse(["text"])


async def test_a_kind_of_model_can_be_off(model_home: Path) -> None:
    settings = Settings(home=model_home, embed_model="none", rerank_model="none")
    encoder = await LocalEncoder.open(settings)
    with pytest.raises(ModelError, match="no model that embeds"):
        await encoder.embed(["text"])
    with pytest.raises(ModelError, match="no model that reranks"):
        await encoder.rerank("query", ["text"])
    await encoder.aclose()
