"""What every inference route shares: terms, span, headers, and clients that go away."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from opentelemetry import propagate
from opentelemetry.trace import SpanKind
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ragplane.core.config import DEFAULT_TENANT
from ragplane.core.errors import InputError
from ragplane.core.telemetry import tracer
from serve.batching.work import LANES, Lane, Terms
from serve.http.errors import CLIENT_GONE
from serve.http.services import services
from serve.loaded_model import LoadedModel
from serve.requests import Timings

# What a query never is: more texts to embed, or more candidates, than these.
_MOST_QUERIES = 32
MOST_CANDIDATES = 256
_MILLISECONDS = re.compile(r"[0-9]{1,12}")
_TENANT = re.compile(r"[ -~]{1,128}")


class Costed(Protocol):
    """A result with its cost."""

    @property
    def tokens(self) -> int: ...

    @property
    def truncated_inputs(self) -> int: ...


Asked = TypeVar("Asked")
Result = TypeVar("Result", bound=Costed)
T = TypeVar("T")


def lane_for(inputs: int, most: int = _MOST_QUERIES) -> Lane:
    """The lane of a request that names none: interactive for up to `most` inputs."""
    return "bulk" if inputs > most else "interactive"


def terms_of(request: Request, lane: Lane = "interactive") -> Terms:
    """How the request's headers want it scheduled; `lane` if they name none.

    Raises InputError for a lane, a tenant or a deadline that is none.
    """
    headers = request.headers
    given = headers.get("x-lane")
    if given is not None:
        named = next((known for known in LANES if known == given), None)
        if named is None:
            raise InputError(f"x-lane must be {' or '.join(LANES)}")
        lane = named
    tenant = headers.get("x-tenant", DEFAULT_TENANT)
    if not _TENANT.fullmatch(tenant):
        raise InputError("x-tenant must have 1 to 128 printable ASCII characters")
    return Terms(lane, tenant, _deadline_s(headers.get("x-deadline-ms")))


async def infer(
    request: Request,
    operation: str,
    model: LoadedModel,
    run: Callable[[LoadedModel, Asked], Coroutine[Any, Any, tuple[Result, Timings]]],
    asked: Asked,
) -> tuple[Result, dict[str, str]]:
    """Run what is asked on `model`: its result, and the response headers."""
    with tracer.start_as_current_span(
        f"{operation} {model.name}",
        context=propagate.extract(request.headers),
        kind=SpanKind.SERVER,
        attributes={"gen_ai.operation.name": operation, "gen_ai.request.model": model.name},
    ) as span:
        result, timings = await while_connected(request, run(model, asked))
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


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client closes the connection.

    Raises HTTPException 499 then.
    """
    task = asyncio.current_task()
    assert task is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if gone and not task.uncancel():
            raise HTTPException(CLIENT_GONE, "the client closed the connection") from None
        raise
    finally:
        watcher.cancel()


def _deadline_s(given: str | None) -> float | None:
    if given is None:
        return None
    if not _MILLISECONDS.fullmatch(given):
        raise InputError("x-deadline-ms must be a whole number of milliseconds")
    return time.monotonic() + int(given) / 1e3
