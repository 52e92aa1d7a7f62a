"""`HttpEncoder` against the real application, and against servers that misbehave."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Callable

import httpx
import numpy as np
import pytest

from ragplane.core import errors
from ragplane.core.config import Settings
from serve.client import HttpEncoder
from serve.encoder import Encoder
from serve.http.app import create_app
from serve.local import LocalEncoder


async def test_equals_the_local_encoder(settings: Settings, encoder: LocalEncoder) -> None:
    transport = httpx.ASGITransport(create_app(settings, encoder))
    client = HttpEncoder("http://server/", transport=transport)
    texts = [f"text {n} on tax law" for n in range(260)]
    for made in (encoder, client):
        checked: Encoder = made
        assert await checked.fingerprint() == await encoder.fingerprint()
    here, there = await encoder.embed(texts), await client.embed(texts, input_type="query")
    assert np.abs(here.vectors - there.vectors).max() <= 1e-5
    assert (here.tokens, here.truncated_inputs) == (there.tokens, there.truncated_inputs)
    local, remote = await encoder.rerank("law 7", texts), await client.rerank("law 7", texts)
    assert local.scores == pytest.approx(remote.scores, abs=1e-5)
    assert await client.count_tokens(texts[:2]) == await encoder.count_tokens(texts[:2])
    assert (await client.embed([])).vectors.shape == (await encoder.embed([])).vectors.shape
    with pytest.raises(errors.TokenizerError, match="surrogate"):
        await client.embed(["\ud800"])
    with pytest.raises(errors.EmptyInputError):
        await client.rerank("query", [""])
    with pytest.raises(errors.ModelError, match="sparse"):
        await client.embed_sparse(["text"])
    await client.aclose()


def answering(
    *replies: httpx.Response, tenant: str | None = None
) -> tuple[HttpEncoder, list[httpx.Request]]:
    """A client whose server gives `replies`, the last one for ever; and what it was asked."""
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return replies[min(len(asked), len(replies)) - 1]

    transport = httpx.MockTransport(handle)
    return HttpEncoder("http://server", "key", tenant=tenant, transport=transport), asked


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Sleeps return at once; their lengths in seconds."""
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await real(0)

    monkeypatch.setattr("serve.client.asyncio.sleep", sleep)
    return slept


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, {"error": "bad", "error_type": "Validation"}, errors.InputError),
        (401, {"error": "key", "error_type": "Unauthorized"}, errors.ConfigError),
        (404, {"detail": "not here"}, errors.ConfigError),
        (413, {"error": "large", "error_type": "Validation"}, errors.LimitError),
        (422, {"error": "text", "error_type": "Tokenizer"}, errors.TokenizerError),
        (422, {"error": {"message": "long", "code": "over_limit"}}, errors.LimitError),
        (424, {"error": "kind", "error_type": "Backend"}, errors.ModelError),
        (429, {"error": "busy", "error_type": "Overloaded"}, errors.OverloadedError),
        (503, {"error": "down", "error_type": "Unhealthy"}, errors.UnavailableError),
        (500, ["odd"], errors.UnavailableError),
    ],
)
@pytest.mark.usefixtures("no_pauses")
async def test_statuses_become_errors(status: int, body: object, error: type[Exception]) -> None:
    client, _ = answering(httpx.Response(status, json=body))
    with pytest.raises(error, match=f"http://server/info: {status}") as raised:
        await client.fingerprint()
    assert type(raised.value) is error


@pytest.mark.parametrize(
    "reply",
    [
        httpx.Response(200, html="<html>Welcome</html>"),
        httpx.Response(200, content=b"\xff"),
        httpx.Response(200, json=[{"index": 0, "score": 1.0}]),  # TEI: its headers are others
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"data": [{"embedding": [0.5]}], "usage": {"total_tokens": 1}}),
        httpx.Response(200, json={"data": [], "model_type": None, "detail": "?"}),
        httpx.Response(200, json="text"),
    ],
)
async def test_another_kind_of_server_is_told(reply: httpx.Response) -> None:
    client, _ = answering(reply)
    for call in (
        client.fingerprint(),
        client.embed([]),
        client.embed(["text"]),
        client.embed_sparse(["text"]),
        client.rerank("query", ["text"]),
        client.count_tokens(["text"]),
    ):
        with pytest.raises(errors.ConfigError, match=r"http://server/.*: not a Ragplane server"):
            await call


async def test_dimensions_are_asked_once() -> None:
    kinds = {"embedding": {"pooling": "mean", "dimensions": 7}}
    client, asked = answering(httpx.Response(200, json={"model_type": kinds}))
    assert [(await client.embed([])).vectors.shape for _ in range(2)] == [(0, 7), (0, 7)]
    assert [request.url.path for request in asked] == ["/info"]
    client, _ = answering(httpx.Response(200, json={"model_type": {"reranker": {}}}))
    with pytest.raises(errors.ModelError, match="no embedding model"):
        await client.embed([])


async def test_documents_take_the_bulk_lane_and_queries_do_not() -> None:
    """Behaviour 4."""
    vector = {"embedding": base64.b64encode(b"\0\0\0\0").decode()}
    answer = {"data": [vector], "usage": {"total_tokens": 1}}
    client, asked = answering(
        httpx.Response(200, json=answer, headers={"x-truncated-inputs": "0"}), tenant="acme"
    )
    await client.embed(["text"])
    await client.embed(["text"], input_type="query")
    assert [request.headers["x-lane"] for request in asked] == ["bulk", "interactive"]
    assert {request.headers["x-tenant"] for request in asked} == {"acme"}
    weights = httpx.Response(200, json=[[{"index": 5, "value": 0.5}]])
    client, asked = answering(weights)
    assert await client.embed_sparse(["text"]) == [{5: 0.5}]
    assert (asked[0].url.path, asked[0].headers["x-lane"]) == ("/embed_sparse", "bulk")
    assert "x-tenant" not in asked[0].headers


@pytest.mark.parametrize("url", ["localhost:8080", "", "http://", "http://a:b", "http://a:99999"])
def test_an_address_that_is_none_is_told(url: str) -> None:
    with pytest.raises(errors.ConfigError, match="not an address"):
        HttpEncoder(url)


async def test_a_busy_server_is_asked_again(no_pauses: list[float]) -> None:
    busy = httpx.Response(429, headers={"retry-after": "3"}, json={})
    fine = httpx.Response(200, json={"fingerprint": "abc"})
    client, asked = answering(busy, httpx.Response(503, text="no"), fine)
    assert await client.fingerprint() == "abc"
    assert no_pauses == [3, 0.5]
    assert asked[0].headers["authorization"] == "Bearer key"


@pytest.mark.parametrize(("cause", "attempts"), [(httpx.ConnectError, 4), (httpx.ReadTimeout, 1)])
@pytest.mark.usefixtures("no_pauses")
async def test_attempts_are_bounded(
    cause: Callable[[str], httpx.TransportError], attempts: int
) -> None:
    tries = 0

    def handle(request: httpx.Request) -> httpx.Response:
        nonlocal tries
        tries += 1
        raise cause("broken")

    client = HttpEncoder("http://server", transport=httpx.MockTransport(handle))
    with pytest.raises(errors.UnavailableError, match="http://server: broken"):
        await client.fingerprint()
    assert tries == attempts


@pytest.mark.usefixtures("no_pauses")
async def test_a_refused_connection_names_the_url() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    client = HttpEncoder(url)
    with pytest.raises(errors.UnavailableError, match=f"ConnectError {url}: "):
        await client.embed(["text"])
    await client.aclose()
