"""The application: routes, middleware and error handlers around one encoder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from pydantic import SecretStr
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, RagplaneError
from serve.http import probes, routes_cohere, routes_info, routes_openai, routes_tei, routes_text
from serve.http.errors import on_http, on_ragplane
from serve.http.middleware import ApiKey, RequestTelemetry
from serve.http.openapi import RESPONSE_HEADERS, document
from serve.http.operations import Operation
from serve.http.services import Services
from serve.local import LocalEncoder

OPERATIONS: tuple[Operation, ...] = (
    *routes_openai.OPERATIONS,
    *routes_tei.OPERATIONS,
    *routes_text.OPERATIONS,
    *routes_cohere.OPERATIONS,
    *routes_info.OPERATIONS,
    *probes.OPERATIONS,
)


def create_app(settings: Settings, encoder: LocalEncoder | None = None) -> FastAPI:
    """An application that answers with `encoder`, which stays the caller's to close.

    Without one, what needs a model gets 503 until `app.state.services.attach`.
    Raises ConfigError for an empty API key.
    """
    at = Services(settings, encoder)
    app = _Application(
        routes=list(_routes()),
        middleware=list(_middleware(settings, at)),
        docs_url=None,  # the pages would load their scripts from the network
        redoc_url=None,
    )
    app.add_exception_handler(RagplaneError, on_ragplane)
    app.add_exception_handler(HTTPException, on_http)
    app.router.redirect_slashes = False
    app.state.services = at
    return app


class _Application(FastAPI):
    """Described by the operations that it routes, which need nothing of FastAPI's own layers."""

    def openapi(self) -> dict[str, Any]:
        needs_key = self.state.services.settings.api_key is not None
        return document(OPERATIONS, needs_key=needs_key)

    def build_middleware_stack(self) -> ASGIApp:
        """Ours around the router: there are no dependencies or files to close after a request."""
        app: ASGIApp = ExceptionMiddleware(self.router, handlers=self.exception_handlers)
        for layer, arguments, options in reversed(self.user_middleware):
            app = layer(app, *arguments, **options)
        return app


def _routes() -> Iterator[Route]:
    for operation in OPERATIONS:
        for path in operation.paths:
            yield Route(path, operation.endpoint, methods=[operation.method])


def _middleware(settings: Settings, at: Services) -> Iterator[Middleware]:
    """The outermost first: a browser's preflight request carries no key."""
    if settings.cors_allow_origin:
        yield Middleware(
            CORSMiddleware,
            allow_origins=settings.cors_allow_origin,
            allow_methods=("GET", "POST"),
            allow_headers=("*",),
            expose_headers=RESPONSE_HEADERS,
        )
    yield Middleware(RequestTelemetry, metrics=at.metrics)
    if settings.api_key is not None:
        yield Middleware(ApiKey, key=_key(settings.api_key))


def _key(secret: SecretStr) -> str:
    key = secret.get_secret_value()
    if not key:
        raise ConfigError("api_key is set, but empty")
    return key
