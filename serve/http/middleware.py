"""What happens around every route: request ids, times and counts; the key."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from uuid import uuid4

import structlog
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragplane.core.errors import UnavailableError, describe
from serve.http.errors import CLIENT_GONE, HTTP_CAUSES, error_response, on_ragplane
from serve.http.metrics import INFERENCE_ROUTES, Metrics

OPEN_PATHS = ("/health", "/ready")
_log = structlog.get_logger()
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)


class RequestTelemetry:
    """Sets `request.state.request_id`, the headers x-request-id and x-total-time; counts.

    Answers defects with 500, and what the server's end cuts off with 503, so that these responses
    too carry the headers.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s = time.perf_counter()
        state = scope.setdefault("state", {})
        given = Headers(scope=scope).get("x-request-id", "")
        answered = False
        state["request_id"] = given if _REQUEST_ID.fullmatch(given) else uuid4().hex

        async def send_with_headers(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                total_ms = (time.perf_counter() - started_s) * 1e3
                message["headers"] += [
                    (b"x-request-id", state["request_id"].encode()),
                    (b"x-total-time", b"%.3f" % total_ms),
                ]
            try:
                await send(message)
            except RuntimeError as error:
                if "handler is closed" not in str(error):  # uvloop's words for a client that left
                    raise
                state["failure"] = HTTP_CAUSES[CLIENT_GONE].tei_type.lower()

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:  # a defect; the server logs its traceback
            _log.error("request failed", path=scope["path"], error=describe(error))
            response = error_response(Request(scope), HTTP_CAUSES[500], "internal error")
            if not answered:
                await response(scope, receive, send_with_headers)
            raise
        except asyncio.CancelledError:  # the server ends, and waits for this request no longer
            if not answered:
                stopping = UnavailableError("the server is stopping")
                refusal = await on_ragplane(Request(scope), stopping)
                await refusal(scope, receive, send_with_headers)
        finally:
            if scope["path"] in INFERENCE_ROUTES:
                seconds = time.perf_counter() - started_s
                failure = state.get("failure") if answered else "internal"
                self._metrics.request(scope["path"], failure, seconds)


class ApiKey:
    """Answers 401 unless the request carries the key. Health and readiness are open."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._has_key(scope):
            await self._app(scope, receive, send)
            return
        message = "a valid API key is needed: Authorization: Bearer <key>"
        headers = {"WWW-Authenticate": "Bearer"}
        response = error_response(Request(scope), HTTP_CAUSES[401], message, headers=headers)
        await response(scope, receive, send)

    def _has_key(self, scope: Scope) -> bool:
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        sent = token.strip().encode("latin-1")  # the bytes as they came
        return scheme.lower() == "bearer" and hmac.compare_digest(sent, self._key)
