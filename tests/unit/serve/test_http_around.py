"""What surrounds the routes: headers, keys, limits, probes, metrics, spans, clients that leave."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import SecretStr

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, NonFiniteError
from serve.backend import TokenIds
from serve.encoder import Vectors
from serve.http.app import create_app
from serve.local import LocalEncoder
from serve.onnx_backend import OnnxBackend

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


def connect(settings: Settings, encoder: LocalEncoder, **change: object) -> httpx.AsyncClient:
    app = create_app(settings.model_copy(update=change), encoder)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://server")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": ["a " * 300, "b"]}),
        ("/v1/embeddings", {"input": ["a " * 300, "b"]}),
        ("/rerank", {"query": "q", "texts": ["a " * 300, "b"]}),
        ("/v1/rerank", {"query": "q", "documents": ["a " * 300, "b"]}),
    ],
)
async def test_inference_headers(
    client: httpx.AsyncClient, path: str, body: dict[str, object]
) -> None:
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


async def test_key(settings: Settings, encoder: LocalEncoder) -> None:
    async with connect(settings, encoder, api_key=SecretStr("sécret")) as client:
        assert (await client.get("/health")).status_code == 200
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


async def test_payload_limit(settings: Settings, encoder: LocalEncoder) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b" " * 20

    headers = {"content-type": "application/json"}
    async with connect(settings, encoder, payload_limit_bytes=100) as client:
        assert (await client.post("/embed", json={"inputs": "a" * 50})).status_code == 200
        declared = await client.post("/embed", json={"inputs": "a" * 200})
        chunked = await client.post("/embed", content=chunks(), headers=headers)
    for reply in (declared, chunked):
        assert reply.status_code == 413
        assert "100 bytes" in reply.json()["error"]


async def test_unknown_routes_and_methods(client: httpx.AsyncClient) -> None:
    assert (await client.get("/nope")).json()["error_type"] == "NotFound"
    assert (await client.get("/v1/nope")).json()["error"]["code"] == "unknown_url"
    wrong = await client.get("/embed")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert "error" in wrong.json()


async def test_client_batch_limit(settings: Settings, encoder: LocalEncoder) -> None:
    async with connect(settings, encoder, max_client_batch_size=2) as client:
        assert (await client.post("/embed", json={"inputs": ["a"] * 2})).status_code == 200
        over = await client.post("/embed", json={"inputs": ["a"] * 3})
    assert (over.status_code, over.json()["error_type"]) == (422, "Validation")


async def test_deadline(client: httpx.AsyncClient) -> None:
    body = {"input": "a"}
    late = await client.post("/v1/embeddings", json=body, headers={"x-deadline-ms": "0"})
    assert (late.status_code, late.json()["error"]["type"]) == (429, "deadline")
    assert int(late.headers["retry-after"]) >= 1
    fine = await client.post("/v1/embeddings", json=body, headers={"x-deadline-ms": "60000"})
    assert fine.status_code == 200
    for wrong in ("-1", "soon", "1.5", "9" * 400):
        reply = await client.post("/embed", json={"inputs": "a"}, headers={"x-deadline-ms": wrong})
        assert reply.status_code == 400


async def test_a_kind_of_model_that_is_off(settings: Settings) -> None:
    nothing = LocalEncoder(settings, None, None)
    async with connect(settings, nothing) as client:
        embed = await client.post("/embed", json={"inputs": "a"})
        assert (embed.status_code, embed.json()["error_type"]) == (424, "Backend")
        reply = await client.post("/v2/rerank", json={"query": "q", "documents": ["a"]})
        assert reply.status_code == 424
        assert (await client.get("/v1/models")).json()["data"] == []
    await nothing.aclose()


async def test_failures_inside(
    settings: Settings, encoder: LocalEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, status, kind in (
        (NonFiniteError(), 424, "inference_error"),
        (ZeroDivisionError("secret detail"), 500, "internal_error"),
    ):

        async def fail(request: object, error: Exception = error) -> None:
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


async def test_spans_continue_the_caller_s_trace(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for module in ("serve.http.inference", "serve.local"):
        monkeypatch.setattr(f"{module}.tracer", provider.get_tracer("test"))
    parent = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    await client.post("/embed", json={"inputs": "a"}, headers=parent)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    root = spans.pop("embeddings all-MiniLM-L6-v2")
    assert root.parent is not None
    assert f"{root.parent.trace_id:032x}" == "a" * 32
    assert spans.keys() == {"tokenize", "queue", "inference"}
    assert {span.parent.span_id for span in spans.values()} == {root.context.span_id}


async def test_metrics_exist_before_the_first_request_and_count(
    client: httpx.AsyncClient,
) -> None:
    before = samples((await client.get("/metrics")).text)
    assert before["te_request_count", "/embed"] == 0
    assert before["te_request_failure", "overloaded"] == 0
    assert before["te_queue_size", ""] == 0
    assert before["ragplane_dropped_inputs_total", "cancelled"] == 0
    await client.post("/embed", json={"inputs": ["a " * 300, "b", "b"]})
    await client.post("/embed", json={"inputs": ""})
    after = samples((await client.get("/metrics")).text)
    assert after["te_request_count", "/embed"] == 2
    assert after["te_request_success", "/embed"] == 1
    assert after["te_request_failure", "empty"] == 1
    assert after["ragplane_truncated_inputs_total", ""] == 1
    assert after["ragplane_deduplicated_inputs_total", ""] == 1
    assert after["te_request_inference_duration_count", ""] == 1
    assert after["te_batch_next_size_sum", ""] == 2


def samples(text: str) -> dict[tuple[str, str], float]:
    """Value by series name and the value of its first label."""
    lines = re.findall(r'^(\w+)(?:\{\w+="([^"]*)"[^}]*\})? (\S+)$', text, re.MULTILINE)
    return {(name, label): float(value) for name, label, value in lines}


async def test_health_answers_while_a_batch_runs(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = OnnxBackend.forward
    runs, gate = threading.Event(), threading.Event()

    def held(self: OnnxBackend, inputs: Sequence[TokenIds]) -> list[Vectors]:
        runs.set()
        gate.wait(10)
        return forward(self, inputs)

    monkeypatch.setattr(OnnxBackend, "forward", held)
    batch = asyncio.create_task(client.post("/embed", json={"inputs": "held"}))
    assert await asyncio.to_thread(runs.wait, 10)
    assert (await client.get("/health")).status_code == 200
    assert not batch.done()
    gate.set()
    assert len((await batch).json()) == 1


async def test_a_client_that_leaves_cancels_its_inputs(
    settings: Settings, encoder: LocalEncoder
) -> None:
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
    call = asyncio.create_task(app(scope, messages.get, send))  # type: ignore[arg-type]
    for _ in range(1000):
        if encoder.models[0].batcher.queue_size:
            break
        await asyncio.sleep(0.01)
    messages.put_nowait({"type": "http.disconnect"})
    await call
    assert sent[0]["status"] == 499
    await encoder.embed(["the queue is free again"])
    assert encoder.models[0].batcher.queue_size == 0
