"""`/embed`, `/embed_all`, `/similarity`, `/rerank`, `/tokenize`, `/decode`, `/info`."""

from __future__ import annotations

import httpx
import numpy as np
import pytest

from serve.local import LocalEncoder

JSON = {"content-type": "application/json"}


async def test_embed_takes_texts_and_ids_mixed(
    client: httpx.AsyncClient, encoder: LocalEncoder
) -> None:
    (tokens,) = encoder.registry.pick("embed").tokenizer.encode(["tax law"])
    mixed = {"inputs": ["tax law", list(tokens.ids)], "truncation_direction": "LEFT"}
    rows = (await client.post("/embed", json=mixed)).json()
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)
    assert np.linalg.norm(rows[0]) == pytest.approx(1, abs=1e-5)


async def test_embed_options(client: httpx.AsyncClient) -> None:
    raw = (await client.post("/embed", json={"inputs": "x", "normalize": False})).json()
    assert abs(np.linalg.norm(raw[0]) - 1) > 1e-3
    cut = (await client.post("/embed", json={"inputs": "x", "dimensions": 8})).json()
    assert len(cut[0]) == 8


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"inputs": ""}, 400, "Empty"),
        ({"inputs": []}, 400, "Empty"),
        ({"inputs": [[]]}, 400, "Empty"),
        ({"inputs": 5}, 400, "Validation"),
        ({"inputs": "a", "truncation_direction": "up"}, 400, "Validation"),
        ({"inputs": "a", "dimensions": -1}, 422, "Validation"),
        ({"inputs": "a", "prompt_name": "none such"}, 422, "Validation"),
        ({"inputs": [5], "prompt_name": "query"}, 400, "Validation"),
        ({"inputs": "a " * 300, "truncate": False}, 422, "Validation"),
        ({"inputs": [5] * 300, "truncate": False}, 422, "Validation"),
        ({"inputs": ["a"] * 2049}, 422, "Validation"),
    ],
)
async def test_embed_errors(
    client: httpx.AsyncClient, body: dict[str, object], status: int, kind: str
) -> None:
    reply = await client.post("/embed", json=body)
    assert (reply.status_code, reply.json()["error_type"]) == (status, kind)
    assert reply.json()["error"]


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (rb'{"inputs": "\ud800"}', 422),
        (rb'{"inputs": ["fine", "\udfff tail"]}', 422),
        (rb'{"inputs": "\u0000"}', 200),
        (b'{"inputs": "   "}', 200),
        ('{"inputs": "👩‍👩‍👧 שלום"}'.encode(), 200),
        (b'{"inputs": "' + b"a" * 1_000_000 + b'"}', 200),
        (b'{"inputs": "' + b"a " * 500_000 + b'"}', 200),
        (b'{"inputs": "\xff"}', 400),
        (b'{"inputs": ', 400),
        (b"", 400),
        (b"[" * 100_000, 400),
    ],
)
async def test_any_text_gets_a_clear_answer(
    client: httpx.AsyncClient, raw: bytes, status: int
) -> None:
    """Behaviour 24: a clear answer for each, never a 500."""
    reply = await client.post("/embed", content=raw, headers=JSON)
    assert reply.status_code == status
    assert status == 200 or reply.json().keys() == {"error", "error_type"}


async def test_rerank_is_sorted_and_ties_keep_the_input_order(client: httpx.AsyncClient) -> None:
    texts = ["dogs bark", "Paris is the capital of France", "dogs bark"]
    body = {"query": "capital of France", "texts": texts, "return_text": True}
    reply = (await client.post("/rerank", json=body)).json()
    assert [item["index"] for item in reply] == [1, 0, 2]
    assert [item["text"] for item in reply] == [texts[1], texts[0], texts[2]]
    raw = await client.post("/rerank", json={"query": "q", "texts": texts, "raw_scores": True})
    assert all(item.keys() == {"index", "score"} for item in raw.json())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"query": "q", "texts": []}, 400),
        ({"query": "", "texts": ["a"]}, 400),
        ({"query": " ", "texts": ["a"]}, 400),
        ({"query": "q", "texts": ["a", ""]}, 400),
        ({"query": "q"}, 400),
        ({"query": "q", "texts": ["a " * 300], "truncate": False}, 422),
        ({"query": "q", "texts": ["a"] * 2049}, 422),
    ],
)
async def test_rerank_errors(
    client: httpx.AsyncClient, body: dict[str, object], status: int
) -> None:
    assert (await client.post("/rerank", json=body)).status_code == status


async def test_tokenize(client: httpx.AsyncClient) -> None:
    (tokens,) = (await client.post("/tokenize", json={"inputs": "Tax läw"})).json()
    assert tokens[0] == {"id": 101, "text": "[CLS]", "special": True, "start": None, "stop": None}
    assert [token["text"] for token in tokens[1:-1]] == ["Tax", "läw"]
    assert (tokens[2]["start"], tokens[2]["stop"]) == (4, 7)
    plain = {"inputs": ["Tax", "law"], "add_special_tokens": False}
    assert [len(row) for row in (await client.post("/tokenize", json=plain)).json()] == [1, 1]
    assert (await client.post("/tokenize", json={"inputs": [""]})).status_code == 400
    surrogate = await client.post("/tokenize", content=rb'{"inputs": "\ud800"}', headers=JSON)
    assert surrogate.status_code == 422


async def test_decode(client: httpx.AsyncClient) -> None:
    ids = [101, 4171, 2375, 102]
    assert (await client.post("/decode", json={"ids": ids})).json() == ["tax law"]
    kept = {"ids": [ids, ids[1:2]], "skip_special_tokens": False}
    assert (await client.post("/decode", json=kept)).json() == ["[CLS] tax law [SEP]", "tax"]
    for bad, status in (([], 400), ([[]], 400), ([30522], 422), ([-1], 422), (["a"], 400)):
        assert (await client.post("/decode", json={"ids": bad})).status_code == status


async def test_embed_all_pools_to_the_embedding(
    client: httpx.AsyncClient, encoder: LocalEncoder
) -> None:
    texts = ["tax law", "a boat on the river"]
    rows = (await client.post("/embed_all", json={"inputs": texts})).json()
    assert [len(row) for row in rows] == await encoder.count_tokens(texts)
    pooled = np.array([np.mean(row, axis=0) for row in rows])
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
    vectors = (await client.post("/embed", json={"inputs": texts})).json()
    np.testing.assert_allclose(pooled, vectors, atol=1e-5)


async def test_similarity_is_the_cosine_of_the_embeddings(client: httpx.AsyncClient) -> None:
    source, sentences = "tax law", ["law of taxes", "a boat", "tax law"]
    inputs = {"source_sentence": source, "sentences": sentences}
    body = {"inputs": inputs, "parameters": {"truncate": True, "truncation_direction": "Left"}}
    reply = await client.post("/similarity", json=body)
    vectors = np.array((await client.post("/embed", json={"inputs": [source, *sentences]})).json())
    np.testing.assert_allclose(reply.json(), vectors[1:] @ vectors[0], atol=1e-5)
    assert reply.json()[2] == pytest.approx(1, abs=1e-5)
    assert "x-model-fingerprint" in reply.headers


@pytest.mark.parametrize(
    ("inputs", "parameters", "status", "named"),
    [
        ({"source_sentence": "", "sentences": ["a"]}, None, 400, "source_sentence[0]"),
        ({"source_sentence": "a", "sentences": []}, None, 400, "sentences"),
        ({"source_sentence": "a", "sentences": ["b", ""]}, None, 400, "sentences[1]"),
        ({"source_sentence": "a"}, None, 400, "inputs.sentences"),
        ({"source_sentence": "a", "sentences": ["b"]}, {"prompt_name": "none"}, 422, "prompt_name"),
        ("a", None, 400, "inputs"),
    ],
)
async def test_similarity_errors(
    client: httpx.AsyncClient, inputs: object, parameters: object, status: int, named: str
) -> None:
    reply = await client.post("/similarity", json={"inputs": inputs, "parameters": parameters})
    assert reply.status_code == status
    assert named in reply.json()["error"]


async def test_info(client: httpx.AsyncClient, encoder: LocalEncoder) -> None:
    """Behaviours 14 and 15: the backend, its precision and its parity are shown."""
    info = (await client.get("/info")).json()
    assert (info["model_id"], info["served_model_name"]) == ("all-MiniLM-L6-v2",) * 2
    assert info["model_type"]["embedding"] == {"pooling": "mean", "dimensions": 384}
    assert info["model_type"]["reranker"]["id2label"] == {"0": "relevance"}
    assert (info["max_input_length"], info["max_batch_tokens"]) == (256, 16384)
    assert (info["max_concurrent_requests"], info["max_client_batch_size"]) == (512, 2048)
    assert (info["auto_truncate"], info["scheduling"]) == (True, "fair")
    assert info["tokenization_workers"] == encoder.tokenizer_threads
    assert info["fingerprint"] == await encoder.fingerprint()
    assert (info["backend"], info["model_dtype"]) == ("onnxruntime", "float32")
    assert info["micro_batch_tokens"] > 0
    assert len(info["model_sha"]) == 64
    (listed,) = info["models"]
    assert listed.items() <= info.items()
