"""What surrounds the routes: headers, terms, keys, CORS, limits, unknown routes, defects."""

from __future__ import annotations

import asyncio

import httpx
import pytest
import structlog
from pydantic import SecretStr

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, NonFiniteError
from serve.batching.work import Terms
from serve.http.app import create_app
from serve.local import LocalEncoder
from serve.requests import EmbedRequest
from tests.unit.serve.http_app import connect, samples

INFERENCE_HEADERS = [
    "x-request-id",
    "x-model-fingerprint",
    "x-compute-tokens",
    "x-truncated-inputs",
    "x-total-time",
    "x-tokenization-time",
    "x-queue-time",
    "x-inference-time",
]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": ["a " * 300, "b"]}),
        ("/embed_all", {"inputs": ["a " * 300, "b"]}),
        ("/similarity", {"inputs": {"source_sentence": "a " * 300, "sentences": ["b"]}}),
        ("/v1/embeddings", {"input": ["a " * 300, "b"]}),
        ("/embeddings", {"input": ["a " * 300, "b"]}),
        ("/rerank", {"query": "q", "texts": ["a " * 300, "b"]}),
        ("/v1/rerank", {"query": "q", "documents": ["a " * 300, "b"]}),
        ("/v2/rerank", {"query": "q", "documents": ["a " * 300, "b"]}),
    ],
)
async def test_inference_headers(
    client: httpx.AsyncClient, path: str, body: dict[str, object]
) -> None:
    """Behaviour 21: how many inputs were cut is told."""
    reply = await client.post(path, json=body, headers={"x-request-id": "mine-1"})
    assert reply.headers["x-request-id"] == "mine-1"
    assert reply.headers["x-truncated-inputs"] == "1"
    assert int(reply.headers["x-compute-tokens"]) >= 256 + 3
    assert all(name in reply.headers for name in INFERENCE_HEADERS)
    parts = ["x-tokenization-time", "x-queue-time", "x-inference-time"]
    spent = sum(float(reply.headers[name]) for name in parts)
    assert 0 < spent <= float(reply.headers["x-total-time"]) + 1


async def test_unusable_request_ids_are_replaced(client: httpx.AsyncClient) -> None:
    reply = await client.get("/health", headers={"x-request-id": "a b\t"})
    assert len(reply.headers["x-request-id"]) == 32


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Terms]:
    """The terms of every request to embed."""
    terms: list[Terms] = []
    run = LocalEncoder.run_embed

    async def noted(self: LocalEncoder, model: object, request: EmbedRequest) -> object:
        terms.append(request.terms)
        return await run(self, model, request)

    monkeypatch.setattr(LocalEncoder, "run_embed", noted)
    return terms


async def test_terms_come_from_the_headers(client: httpx.AsyncClient, asked: list[Terms]) -> None:
    """Behaviour 4: the lane and the tenant of a request reach the scheduler."""
    headers = {"x-lane": "bulk", "x-tenant": "acme & sons"}
    for inputs, sent in (("a", {}), (["a"] * 32, {}), (["a"] * 33, {}), ("a", headers)):
        reply = await client.post("/embed", json={"inputs": inputs}, headers=sent)
        assert reply.status_code == 200
    late = {"x-lane": "interactive"}
    await client.post("/v1/embeddings", json={"input": ["a"] * 40}, headers=late)
    lanes = [(term.lane, term.tenant) for term in asked]
    plain = [("interactive", "default"), ("interactive", "default"), ("bulk", "default")]
    assert lanes == [*plain, ("bulk", "acme & sons"), ("interactive", "default")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-lane", "fast"),
        ("x-lane", ""),
        ("x-tenant", ""),
        ("x-tenant", "a" * 129),
        ("x-tenant", "a\tb"),
        ("x-tenant", "é"),
        ("x-deadline-ms", "-1"),
        ("x-deadline-ms", "soon"),
        ("x-deadline-ms", "1.5"),
        ("x-deadline-ms", "9" * 400),
    ],
)
async def test_bad_terms_are_told(client: httpx.AsyncClient, name: str, value: str) -> None:
    headers = {name: value.encode()}
    reply = await client.post(
        "/v2/rerank", json={"query": "q", "documents": ["a"]}, headers=headers
    )
    assert reply.status_code == 400
    assert reply.json()["message"].startswith(name)


async def test_deadline(client: httpx.AsyncClient) -> None:
    body = {"input": "a"}
    late = await client.post("/v1/embeddings", json=body, headers={"x-deadline-ms": "0"})
    assert (late.status_code, late.json()["error"]["type"]) == (429, "deadline")
    assert int(late.headers["retry-after"]) >= 1
    fine = await client.post("/v1/embeddings", json=body, headers={"x-deadline-ms": "60000"})
    assert fine.status_code == 200


async def test_key(
    settings: Settings, encoder: LocalEncoder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behaviour 32: refused with a body in the dialect of the path, and never logged."""
    async with connect(settings, encoder, api_key=SecretStr("sécret")) as client:
        assert (await client.get("/health")).status_code == 200
        assert (await client.head("/health")).status_code == 200
        assert (await client.get("/ready")).status_code == 200
        wrong = await client.post("/v1/embeddings", json={"input": "a"})
        assert wrong.status_code == 401
        assert wrong.json()["error"]["type"] == "authentication_error"
        for value in (b"Bearer wrong", b"Basic x", b"Bearer", b"Bearer \xff"):
            reply = await client.get("/metrics", headers={b"authorization": value})
            assert reply.json()["error_type"] == "Unauthorized"
        right = {b"authorization": "bearer sécret".encode()}
        assert (await client.get("/metrics", headers=right)).status_code == 200
    with pytest.raises(ConfigError, match="empty"):
        connect(settings, encoder, api_key=SecretStr(""))
    assert "sécret" not in "".join(capsys.readouterr())


async def test_cors(settings: Settings, encoder: LocalEncoder) -> None:
    page = {"origin": "https://app.example", "access-control-request-method": "POST"}
    change = {"cors_allow_origin": ("https://app.example",), "api_key": SecretStr("K")}
    async with connect(settings, encoder, **change) as client:
        asked = page | {"access-control-request-headers": "authorization, x-lane"}
        preflight = await client.options("/embed", headers=asked)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == page["origin"]
        refused = await client.post("/embed", json={"inputs": "a"}, headers=page)
        assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (
            401,
            True,
        )
        key = page | {"authorization": "Bearer K"}
        reply = await client.post("/embed", json={"inputs": "a"}, headers=key)
        assert set(INFERENCE_HEADERS) <= set(
            reply.headers["access-control-expose-headers"].split(", ")
        )
        other = await client.options("/embed", headers=page | {"origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers
    async with connect(settings, encoder) as client:
        assert (
            "access-control-allow-origin" not in (await client.get("/health", headers=page)).headers
        )


async def test_unknown_routes_and_methods(client: httpx.AsyncClient) -> None:
    assert (await client.get("/nope")).json()["error_type"] == "NotFound"
    assert (await client.get("/v1/nope")).json()["error"]["code"] == "unknown_url"
    assert (await client.post("/v2/nope")).json().keys() == {"message"}
    assert (await client.post("/embed/")).status_code == 404
    wrong = await client.get("/embed")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert "error" in wrong.json()
    assert (await client.delete("/v1/rerank")).json().keys() == {"message"}
    assert set((await client.post("/health")).headers["allow"].split(", ")) == {"GET", "HEAD"}


async def test_client_batch_limit(settings: Settings, encoder: LocalEncoder) -> None:
    async with connect(settings, encoder, max_client_batch_size=2) as client:
        assert (await client.post("/embed", json={"inputs": ["a"] * 2})).status_code == 200
        over = await client.post("/embed", json={"inputs": ["a"] * 3})
    assert (over.status_code, over.json()["error_type"]) == (422, "Validation")


async def test_a_kind_of_model_that_is_off(settings: Settings) -> None:
    nothing = LocalEncoder(settings, [])
    async with connect(settings, nothing) as client:
        embed = await client.post("/embed", json={"inputs": "a"})
        assert (embed.status_code, embed.json()["error_type"]) == (424, "Backend")
        reply = await client.post("/v2/rerank", json={"query": "q", "documents": ["a"]})
        assert reply.status_code == 424
        assert (await client.get("/v1/models")).json()["data"] == []
        assert (await client.get("/info")).status_code == 424
    await nothing.aclose()


async def test_failures_inside(
    settings: Settings, encoder: LocalEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 20: what is not finite is an error, and no null in a 200."""
    for error, status, kind in (
        (NonFiniteError(), 424, "inference_error"),
        (ZeroDivisionError("secret detail"), 500, "internal_error"),
    ):

        async def fail(model: object, request: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(LocalEncoder, "run_embed", staticmethod(fail))
        async with connect(settings, encoder) as client:
            headers = {"x-request-id": "mine-1"}
            reply = await client.post("/v1/embeddings", json={"input": "a"}, headers=headers)
            metrics = samples((await client.get("/metrics")).text)
        assert (reply.status_code, reply.json()["error"]["type"]) == (status, kind)
        assert reply.headers["x-request-id"] == "mine-1"
        assert metrics["te_request_success", "/v1/embeddings"] == 0
        assert sum(metrics["te_request_failure", label] for label in ("backend", "internal")) == 1
        assert "secret" not in reply.text


async def test_request_texts_are_not_logged(
    client: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behaviour 32."""
    with structlog.testing.capture_logs() as logs:
        for body in ({"inputs": "private words"}, {"inputs": {"x": "private words"}}):
            await client.post("/embed", json=body)
        await client.post("/embed", content=b'{"inputs": "private words')
    assert "private" not in f"{logs}{capsys.readouterr()}"


async def test_a_client_that_leaves_cancels_its_inputs(
    settings: Settings, encoder: LocalEncoder
) -> None:
    """Behaviour 6."""
    app = create_app(settings, encoder)
    text = b'{"inputs": ["' + b'","'.join(b"%d " % n * 90 for n in range(300)) + b'"]}'
    messages: asyncio.Queue[dict[str, object]] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": text, "more_body": False})
    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/embed",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    call = asyncio.create_task(app(scope, messages.get, send))
    batcher = encoder.models[0].batcher
    for _ in range(1000):
        if batcher.queue_sizes["bulk"]:
            break
        await asyncio.sleep(0.01)
    messages.put_nowait({"type": "http.disconnect"})
    await call
    assert sent[0]["status"] == 499
    await encoder.embed(["the queue is free again"])
    assert batcher.queue_sizes == {"interactive": 0, "bulk": 0}
