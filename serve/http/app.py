"""The application: routes, middleware and error handlers around one encoder."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import SecretStr

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError
from serve.http import routes_cohere, routes_openai, routes_tei
from serve.http.errors import add_handlers
from serve.http.middleware import ApiKey, PayloadLimit, RequestTelemetry
from serve.http.services import Services, services
from serve.local import LocalEncoder

_probes = APIRouter()


def create_app(settings: Settings, encoder: LocalEncoder | None = None) -> FastAPI:
    """An application that answers with `encoder`, which stays the caller's to close.

    Without one, what needs a model gets 503 until `app.state.services.attach`.
    Raises ConfigError for an empty API key.
    """
    app = FastAPI(title="Ragplane", redirect_slashes=False)
    app.state.services = at = Services(settings, encoder)
    for router in (_probes, routes_openai.router, routes_tei.router, routes_cohere.router):
        app.include_router(router)
    add_handlers(app)
    # The one added last is the outermost.
    app.add_middleware(PayloadLimit, limit_bytes=settings.payload_limit_bytes)
    if settings.api_key is not None:
        app.add_middleware(ApiKey, key=_key(settings.api_key))
    app.add_middleware(RequestTelemetry, metrics=at.metrics)
    return app


@_probes.get("/health")
async def health(request: Request) -> Response:
    """200 while every worker lives and moves, and while the models load."""
    return _state(services(request).healthy)


@_probes.get("/ready")
async def ready(request: Request) -> Response:
    """200 while new requests are taken."""
    return _state(services(request).ready)


@_probes.get("/metrics")
async def metrics(request: Request) -> Response:
    """Prometheus text."""
    content = services(request).metrics.exposition()
    return PlainTextResponse(content, media_type="text/plain; version=0.0.4")


def _key(secret: SecretStr) -> str:
    key = secret.get_secret_value()
    if not key:
        raise ConfigError("api_key is set, but empty")
    return key


def _state(fine: bool) -> Response:
    return JSONResponse({"status": "ok" if fine else "unavailable"}, 200 if fine else 503)
