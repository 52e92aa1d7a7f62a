"""The application before its models are there."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from ragplane.core.config import Settings
from serve.http.app import create_app
from serve.local import LocalEncoder


def connect(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://server")


async def test_probes_and_metrics_answer(settings: Settings, encoder: LocalEncoder) -> None:
    app = create_app(settings)
    async with connect(app) as client:
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/ready")).status_code == 503
        assert "te_queue_size 0.0" in (await client.get("/metrics")).text
        app.state.services.attach(encoder)
        assert (await client.get("/ready")).status_code == 200
        assert (await client.post("/embed", json={"inputs": "a"})).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": "a"}),
        ("/v1/embeddings", {"input": "a"}),
        ("/rerank", {"query": "q", "texts": ["a"]}),
        ("/v2/rerank", {"query": "q", "documents": ["a"]}),
        ("/tokenize", {"inputs": "a"}),
    ],
)
async def test_models_are_told_to_be_loading(
    settings: Settings, path: str, body: dict[str, object]
) -> None:
    async with connect(create_app(settings)) as client:
        reply = await client.post(path, json=body)
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
    assert "loading" in reply.text


@pytest.mark.parametrize("path", ["/info", "/v1/models"])
async def test_facts_of_models_wait(settings: Settings, path: str) -> None:
    async with connect(create_app(settings)) as client:
        assert (await client.get(path)).status_code == 503
