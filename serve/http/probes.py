"""What operators ask: is it alive, is it ready, its metrics."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from serve.http.answers import StatusAnswer
from serve.http.operations import get
from serve.http.services import Services


@get("/health", answer=StatusAnswer)
async def health(at: Services) -> Response:
    """200 while every worker lives and moves, and while the models load."""
    return _state(at.healthy)


@get("/ready", answer=StatusAnswer)
async def ready(at: Services) -> Response:
    """200 while new requests are taken."""
    return _state(at.ready)


@get("/metrics", answer=None)
async def metrics(at: Services) -> Response:
    """Prometheus text."""
    return Response(at.metrics.exposition(), media_type="text/plain; version=0.0.4")


OPERATIONS = (health, ready, metrics)


def _state(fine: bool) -> Response:
    return JSONResponse({"status": "ok" if fine else "unavailable"}, 200 if fine else 503)
