"""Several models of different kinds behind one application: which answers, and how."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from ragplane.core.config import Settings
from serve.client import HttpEncoder
from serve.http.app import create_app
from serve.local import LocalEncoder
from tests.unit.serve.families import save_bert, update_json, write_splade_files
from tests.unit.serve.http_app import connect

LABELS = {"0": "calm", "1": "glad", "2": "sad"}


@pytest.fixture(scope="module")
def kinds(model_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEncoder]:
    """A classifier of three labels, a cross-encoder and a sparse model."""
    folder = tmp_path_factory.mktemp("kinds")
    moods = save_bert(folder / "moods", task="logits", labels=3)
    update_json(moods / "config.json", id2label=LABELS)
    cross = save_bert(folder / "cross", task="logits")
    sparse = write_splade_files(save_bert(folder / "sparse", task="sparse"))
    settings = Settings(
        home=model_home,
        embed_model=str(sparse),
        rerank_model=str(cross),
        extra_models=(str(moods),),
    )
    encoder = asyncio.run(LocalEncoder.open(settings))
    yield encoder
    asyncio.run(encoder.aclose())


@pytest.fixture
async def client(settings: Settings, kinds: LocalEncoder) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(settings, kinds) as client:
        yield client


async def predict(client: httpx.AsyncClient, inputs: object, **more: object) -> httpx.Response:
    return await client.post("/predict", json={"inputs": inputs, "model": "moods", **more})


async def test_predict_one_text_and_batches(client: httpx.AsyncClient) -> None:
    one = (await predict(client, "the green river")).json()
    assert {item["label"] for item in one} == {"calm", "glad", "sad"}
    scores = [item["score"] for item in one]
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) == pytest.approx(1, abs=1e-5)  # softmax
    assert (await predict(client, ["the green river"])).json() == one
    batch = [["the green river"], ["a house", "the answer"], ["the green river"]]
    rows = (await predict(client, batch)).json()
    for row, alone in zip(rows, (one, (await predict(client, batch[1])).json(), one), strict=True):
        assert [item["label"] for item in row] == [item["label"] for item in alone]
        np.testing.assert_allclose(
            [item["score"] for item in row], [item["score"] for item in alone], atol=1e-5
        )


async def test_predict_raw_scores_are_logits(client: httpx.AsyncClient) -> None:
    """Behaviour 23."""
    raw = (await predict(client, "a house", raw_scores=True)).json()
    logits = np.array([item["score"] for item in raw])
    soft = np.exp(logits - logits.max())
    given = [item["score"] for item in (await predict(client, "a house")).json()]
    np.testing.assert_allclose(soft / soft.sum(), given, atol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        ("", "Empty"),
        ([], "Empty"),
        ([[]], "Empty"),
        ([""], "Empty"),
        (["a", ""], "Empty"),
        ([["a"], ["a", ""]], "Empty"),
        (["a", "b", "c"], "Validation"),
        ([["a", "b", "c"]], "Validation"),
        (["a", ["b"]], "Validation"),
        ([5], "Validation"),
        ({"text": "a"}, "Validation"),
    ],
)
async def test_predict_errors(client: httpx.AsyncClient, inputs: object, kind: str) -> None:
    reply = await predict(client, inputs)
    assert (reply.status_code, reply.json()["error_type"]) == (400, kind)


async def test_sparse_weights(client: httpx.AsyncClient, kinds: LocalEncoder) -> None:
    texts = ["the green river", "a house"]
    rows = (await client.post("/embed_sparse", json={"inputs": texts})).json()
    expected = await kinds.embed_sparse(texts)
    for row, weights in zip(rows, expected, strict=True):
        assert {term["index"]: pytest.approx(term["value"], abs=1e-5) for term in row} == weights
    one = (await client.post("/embed_sparse", json={"inputs": texts[0]})).json()
    assert len(one) == 1


async def test_the_http_encoder_reads_sparse_weights(
    settings: Settings, kinds: LocalEncoder
) -> None:
    transport = httpx.ASGITransport(create_app(settings, kinds))
    client = HttpEncoder("http://server", transport=transport)
    texts = ["the green river"] * 300
    there, here = await client.embed_sparse(texts), await kinds.embed_sparse(texts[:1])
    assert len(there) == 300
    assert there[299] == pytest.approx(here[0], abs=1e-5)
    await client.aclose()


async def test_raw_scores_of_a_cross_encoder(client: httpx.AsyncClient) -> None:
    """Behaviour 23."""
    body = {"query": "the river", "texts": ["a house", "the green river"]}
    scores = {
        raw: {
            item["index"]: item["score"]
            for item in (await client.post("/rerank", json=body | {"raw_scores": raw})).json()
        }
        for raw in (False, True)
    }
    for index in (0, 1):
        assert scores[False][index] == pytest.approx(1 / (1 + np.exp(-scores[True][index])))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": "a"}),
        ("/embed_all", {"inputs": "a"}),
        ("/v1/embeddings", {"input": "a"}),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b"]}}),
        ("/rerank", {"query": "q", "texts": ["a"], "model": "moods"}),
        ("/predict", {"inputs": "a", "model": "sparse"}),
    ],
)
async def test_the_wrong_kind_of_model_is_told(
    client: httpx.AsyncClient, path: str, body: dict[str, object]
) -> None:
    reply = await client.post(path, json=body)
    assert reply.status_code == 424
    assert "model" in reply.text


async def test_an_unknown_model_among_several(client: httpx.AsyncClient) -> None:
    """A name that nobody has is refused where several could be meant, else the only one answers."""
    several = await client.post("/predict", json={"inputs": "a", "model": "none such"})
    assert (several.status_code, several.json()["error_type"]) == (404, "NotFound")
    only = await client.post(
        "/v2/rerank", json={"query": "q", "documents": ["a"], "model": "rerank-v3.5"}
    )
    assert (only.status_code, only.json()["model"]) == (200, "cross")
    for path, body in (("/tokenize", {"inputs": "a"}), ("/decode", {"ids": [5]})):
        named = await client.post(path, json=body | {"model": "moods"})
        unknown = await client.post(path, json=body | {"model": "none such"})
        assert (named.status_code, unknown.status_code) == (200, 404)


async def test_models_and_info_show_all(client: httpx.AsyncClient) -> None:
    """Behaviour 29."""
    listed = (await client.get("/v1/models")).json()["data"]
    assert {item["id"]: item["kinds"] for item in listed} == {
        "sparse": ["embed_sparse"],
        "cross": ["rerank", "predict"],
        "moods": ["predict"],
    }
    info = (await client.get("/info")).json()
    types = {model["served_model_name"]: model["model_type"] for model in info["models"]}
    assert types["sparse"] == info["model_type"] == {"embedding_sparse": {"pooling": "splade"}}
    assert types["moods"]["classifier"]["id2label"] == LABELS
    assert types["moods"]["classifier"]["label2id"] == {"calm": 0, "glad": 1, "sad": 2}
    assert types["cross"].keys() == {"reranker"}
    assert len({model["fingerprint"] for model in info["models"]}) == 3
