"""`/v1/embeddings` and `/v1/models`."""

from __future__ import annotations

import base64

import httpx
import numpy as np
import pytest

from serve.local import LocalEncoder

PATHS = ["/v1/embeddings", "/embeddings"]


@pytest.mark.parametrize("path", PATHS)
async def test_floats_and_base64_carry_the_same_vectors(
    client: httpx.AsyncClient, encoder: LocalEncoder, path: str
) -> None:
    texts = ["a boat on the river", "tax law"]
    expected = await encoder.embed(texts)
    body = {"input": texts, "model": "all-MiniLM-L6-v2", "user": "u", "unknown": 1}
    floats = (await client.post(path, json=body)).json()
    coded = (await client.post(path, json=body | {"encoding_format": "base64"})).json()
    assert floats["object"] == "list"
    assert floats["model"] == "all-MiniLM-L6-v2"
    assert floats["usage"] == {"prompt_tokens": expected.tokens, "total_tokens": expected.tokens}
    for index in range(2):
        item = floats["data"][index]
        assert (item["object"], item["index"]) == ("embedding", index)
        got = np.array(item["embedding"], np.float32)
        raw = np.frombuffer(base64.b64decode(coded["data"][index]["embedding"]), "<f4")
        np.testing.assert_array_equal(got, raw)
        assert np.abs(got - expected.vectors[index]).max() <= 1e-5


async def test_token_ids_alone_and_in_batches(
    client: httpx.AsyncClient, encoder: LocalEncoder
) -> None:
    (tokens,) = encoder.registry.pick("embed").tokenizer.encode(["tax law"])
    ids = list(tokens.ids)
    one = (await client.post("/v1/embeddings", json={"input": ids})).json()
    two = (await client.post("/v1/embeddings", json={"input": [ids, ids[:3]]})).json()
    text = (await client.post("/v1/embeddings", json={"input": "tax law"})).json()
    assert len(one["data"]) == 1
    assert len(two["data"]) == 2
    np.testing.assert_allclose(one["data"][0]["embedding"], text["data"][0]["embedding"], atol=1e-5)


async def test_dimensions(client: httpx.AsyncClient) -> None:
    reply = await client.post("/v1/embeddings", json={"input": "x", "dimensions": 10})
    vector = reply.json()["data"][0]["embedding"]
    assert len(vector) == 10
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({}, 400, "input"),
        ({"input": ""}, 400, "input"),
        ({"input": []}, 400, "input"),
        ({"input": ["a", ""]}, 400, "input"),
        ({"input": [[]]}, 400, "input"),
        ({"input": ["a", 1]}, 400, "input"),
        ({"input": [1.5]}, 400, "input"),
        ({"input": [True]}, 400, "input"),
        ({"input": None}, 400, "input"),
        ({"input": [30522]}, 422, "input"),
        ({"input": [-1]}, 422, "input"),
        ({"input": "a", "dimensions": 0}, 422, "dimensions"),
        ({"input": "a", "dimensions": 385}, 422, "dimensions"),
        ({"input": "a", "dimensions": "many"}, 400, "dimensions"),
        ({"input": "a", "encoding_format": "hex"}, 400, "encoding_format"),
        ({"input": ["a"] * 2049}, 422, "input"),
        ({"input": [5, 6], "input_type": "query"}, 400, "input_type"),
    ],
)
async def test_bad_requests(
    client: httpx.AsyncClient, body: dict[str, object], status: int, param: str
) -> None:
    reply = await client.post("/v1/embeddings", json=body)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert error.keys() == {"message", "type", "code", "param"}
    assert (error["type"], error["param"]) == ("invalid_request_error", param)


async def test_models_are_listed_once_with_their_kinds(client: httpx.AsyncClient) -> None:
    """Behaviour 29."""
    (model,) = (await client.get("/v1/models")).json()["data"]
    assert (model["id"], model["object"], model["kind"]) == ("all-MiniLM-L6-v2", "model", "embed")
    assert model["kinds"] == ["embed", "rerank", "embed_all"]
