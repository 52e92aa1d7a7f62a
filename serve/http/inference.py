"""What every inference route shares: deadline, span, headers, and clients that go away."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import structlog
from fastapi import Request
from opentelemetry import propagate
from opentelemetry.trace import SpanKind
from starlette.exceptions import HTTPException

from ragplane.core.errors import InputError
from ragplane.core.telemetry import tracer
from serve.encoder import Embeddings, RerankScores
from serve.http.errors import CLIENT_GONE
from serve.http.services import services
from serve.loaded_model import LoadedModel
from serve.requests import EmbedRequest, RerankRequest, Timings

Asked = TypeVar("Asked", EmbedRequest, RerankRequest)
Result = TypeVar("Result", Embeddings, RerankScores)
T = TypeVar("T")
_MILLISECONDS = re.compile(r"[0-9]{1,12}")
_log = structlog.get_logger()


def note_model(wanted: str | None, model: LoadedModel) -> None:
    """One model of each kind is served, so it answers; another name is worth a line in the log."""
    if wanted not in (None, model.files.name):
        _log.info("another model was asked for", wanted=wanted, served=model.files.name)


async def infer(
    request: Request,
    operation: str,
    model: LoadedModel,
    work: Callable[[Asked], Coroutine[Any, Any, tuple[Result, Timings]]],
    asked: Asked,
) -> tuple[Result, dict[str, str]]:
    """Run `work` on what is asked, within the client's deadline: its result, response headers."""
    asked = replace(asked, deadline_s=_deadline_s(request))
    parent = propagate.extract(request.headers)
    with tracer.start_as_current_span(
        f"{operation} {model.files.name}",
        context=parent,
        kind=SpanKind.SERVER,
        attributes={"gen_ai.operation.name": operation, "gen_ai.request.model": model.files.name},
    ) as span:
        result, timings = await _while_connected(request, work(asked))
        span.set_attribute("gen_ai.usage.input_tokens", result.tokens)
    services(request).metrics.inference(timings, result.tokens, result.truncated_inputs)
    return result, {
        "x-model-fingerprint": model.fingerprint(),
        "x-compute-tokens": str(result.tokens),
        "x-truncated-inputs": str(result.truncated_inputs),
        "x-tokenization-time": f"{timings.tokenization_ms:.3f}",
        "x-queue-time": f"{timings.queue_ms:.3f}",
        "x-inference-time": f"{timings.inference_ms:.3f}",
    }


def _deadline_s(request: Request) -> float | None:
    given = request.headers.get("x-deadline-ms")
    if given is None:
        return None
    if not _MILLISECONDS.fullmatch(given):
        raise InputError("x-deadline-ms must be a whole number of milliseconds")
    return time.monotonic() + int(given) / 1e3


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client closes the connection."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise HTTPException(CLIENT_GONE, "the client closed the connection")
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
