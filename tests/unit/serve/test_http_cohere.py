"""`/v1/rerank` and `/v2/rerank`."""

from __future__ import annotations

import httpx
import pytest

DOCUMENTS = ["dogs bark", {"text": "Paris is the capital of France", "title": "x"}, "dogs bark"]


@pytest.mark.parametrize("version", ["1", "2"])
async def test_rerank(client: httpx.AsyncClient, version: str) -> None:
    body = {"query": "capital of France", "documents": DOCUMENTS, "model": "rerank-v3.5"}
    reply = (await client.post(f"/v{version}/rerank", json=body)).json()
    assert [item["index"] for item in reply["results"]] == [1, 0, 2]
    assert reply["results"][0].keys() == {"index", "relevance_score"}
    assert reply["meta"]["api_version"]["version"] == version
    assert reply["meta"]["billed_units"] == {"search_units": 1}
    assert reply["usage"]["total_tokens"] > 0
    best = body | {"top_n": 1, "return_documents": True}
    (only,) = (await client.post(f"/v{version}/rerank", json=best)).json()["results"]
    assert only["document"] == {"text": "Paris is the capital of France"}


async def test_documents_are_cut_to_max_tokens_per_doc(client: httpx.AsyncClient) -> None:
    body = {"query": "water", "documents": ["water " * 50], "max_tokens_per_doc": 10}
    reply = await client.post("/v2/rerank", json=body)
    assert reply.json()["usage"]["total_tokens"] == 3 + 2 + 10  # its own tokens, and two special
    assert reply.headers["x-truncated-inputs"] == "1"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"documents": []}, 400),
        ({"documents": [""]}, 400),
        ({"documents": [{"title": "x"}]}, 400),
        ({"documents": [{"text": ""}]}, 400),
        ({"documents": "a"}, 400),
        ({"query": ""}, 400),
        ({"top_n": 0}, 422),
        ({"max_tokens_per_doc": 0}, 422),
        ({"top_n": "one"}, 400),
    ],
)
async def test_errors(client: httpx.AsyncClient, change: dict[str, object], status: int) -> None:
    body = {"query": "q", "documents": ["a"]} | change
    reply = await client.post("/v2/rerank", json=body)
    assert reply.status_code == status
    assert reply.json().keys() == {"message"}
