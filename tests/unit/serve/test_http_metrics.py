"""Metrics, spans and probes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from serve.backends.base import ModelInput
from serve.backends.onnx import OnnxBackend
from serve.encoder import Vectors
from serve.http.app import OPERATIONS
from serve.http.errors import CAUSES, HTTP_CAUSES
from serve.http.metrics import INFERENCE_ROUTES
from tests.unit.serve.http_app import samples


async def test_spans_continue_the_caller_s_trace(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for module in ("serve.http.inference", "serve.runs", "serve.tokenizing"):
        monkeypatch.setattr(f"{module}.tracer", provider.get_tracer("test"))
    parent = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    await client.post("/embed", json={"inputs": "a"}, headers=parent)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    root = spans.pop("embeddings all-MiniLM-L6-v2")
    assert root.parent is not None
    assert f"{root.parent.trace_id:032x}" == "a" * 32
    assert root.attributes is not None
    assert root.attributes["gen_ai.usage.input_tokens"] == 3
    assert spans.keys() == {"tokenize", "queue", "inference"}
    assert {span.parent.span_id for span in spans.values()} == {root.context.span_id}
    exporter.clear()
    await client.post("/embed", json={"inputs": "a"}, headers={"traceparent": "nonsense"})
    (root,) = (span for span in exporter.get_finished_spans() if " " in span.name)
    assert root.parent is None


def test_every_inference_route_is_counted() -> None:
    routed = {path for made in OPERATIONS if made.inference for path in made.paths}
    assert routed == set(INFERENCE_ROUTES)


async def test_series_exist_before_the_first_request(client: httpx.AsyncClient) -> None:
    """Behaviour 26."""
    before = samples((await client.get("/metrics")).text)
    for route in INFERENCE_ROUTES:
        assert before["te_request_count", route] == before["te_request_success", route] == 0
    for cause in (*CAUSES.values(), *HTTP_CAUSES.values()):
        assert before["te_request_failure", cause.tei_type.lower()] == 0
    for lane in ("interactive", "bulk"):
        assert before["ragplane_queue_size", lane] == 0
        assert before["ragplane_queue_wait_seconds_count", lane] == 0
    for cause in ("cancelled", "expired"):
        assert before["ragplane_dropped_inputs_total", cause] == 0
    for name in ("te_queue_size", "ragplane_non_finite_outputs_total"):
        assert before[name, ""] == 0
    for part in ("", "_tokenization", "_queue", "_inference"):
        assert before[f"te_request{part}_duration_count", ""] == 0
    for name in ("te_request_input_length", "te_batch_next_size", "te_batch_next_tokens"):
        assert before[f"{name}_count", ""] == 0
    for name in ("ragplane_padding_efficiency", "ragplane_batch_fill"):
        assert before[f"{name}_count", ""] == 0


async def test_series_count(client: httpx.AsyncClient) -> None:
    await client.post("/embed", json={"inputs": ["a " * 300, "b", "b"]})
    await client.post("/embed", json={"inputs": ["b"]}, headers={"x-lane": "bulk"})
    await client.post("/embed", json={"inputs": ""})
    after = samples((await client.get("/metrics")).text)
    assert after["te_request_count", "/embed"] == 3
    assert after["te_request_success", "/embed"] == 2
    assert after["te_request_failure", "empty"] == 1
    assert after["ragplane_truncated_inputs_total", ""] == 1
    assert after["ragplane_deduplicated_inputs_total", ""] == 1
    assert after["te_request_inference_duration_count", ""] == 2
    assert after["te_batch_next_size_sum", ""] == 3
    assert after["ragplane_queue_wait_seconds_count", "interactive"] == 3
    assert after["ragplane_queue_wait_seconds_count", "bulk"] == 1


async def test_probes_answer_and_gauges_are_true_while_a_batch_runs(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 26."""
    forward = OnnxBackend.forward
    runs, gate = threading.Event(), threading.Event()

    def held(self: OnnxBackend, inputs: Sequence[ModelInput]) -> list[Vectors]:
        runs.set()
        gate.wait(10)
        return forward(self, inputs)

    monkeypatch.setattr(OnnxBackend, "forward", held)
    first = asyncio.create_task(client.post("/embed", json={"inputs": "held"}))
    assert await asyncio.to_thread(runs.wait, 10)
    bulk = {"x-lane": "bulk"}
    second = asyncio.create_task(client.post("/embed", json={"inputs": ["b", "c"]}, headers=bulk))
    for _ in range(100):
        now = samples((await client.get("/metrics")).text)
        if now["te_queue_size", ""]:
            break
        await asyncio.sleep(0.01)
    assert (await client.get("/health")).status_code == 200
    assert (await client.head("/health")).status_code == 200
    assert (await client.get("/ready")).status_code == 200
    assert now["ragplane_queue_size", "bulk"] == now["te_queue_size", ""] == 2
    assert not first.done()
    gate.set()
    assert [len((await task).json()) for task in (first, second)] == [1, 2]
    assert samples((await client.get("/metrics")).text)["te_queue_size", ""] == 0
