"""Which error gets which status, and how each dialect words it. The one table of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ragplane.core import errors
from ragplane.core.errors import InputError, RagplaneError

Dialect = Literal["openai", "tei", "cohere"]

CLIENT_GONE = 499  # nginx's status for a client that closed the connection


@dataclass(frozen=True, slots=True)
class Cause:
    """One row of the table. `tei_type` in lower case is also the `err` label of the metrics."""

    status: int
    openai_type: str
    tei_type: str
    code: str


_INVALID = "invalid_request_error"
CAUSES: Mapping[type[RagplaneError], Cause] = {
    errors.InputError: Cause(400, _INVALID, "Validation", "invalid_input"),
    errors.EmptyInputError: Cause(400, _INVALID, "Empty", "empty_input"),
    errors.LimitError: Cause(422, _INVALID, "Validation", "over_limit"),
    errors.ModelNotFoundError: Cause(404, _INVALID, "NotFound", "model_not_found"),
    errors.TokenizerError: Cause(422, _INVALID, "Tokenizer", "tokenizer"),
    errors.ModelError: Cause(424, _INVALID, "Backend", "wrong_model"),
    errors.NonFiniteError: Cause(424, "inference_error", "Backend", "non_finite"),
    errors.OverloadedError: Cause(429, "overloaded", "Overloaded", "overloaded"),
    errors.DeadlineError: Cause(429, "deadline", "Overloaded", "deadline"),
    errors.UnavailableError: Cause(503, "unavailable", "Unhealthy", "unavailable"),
    RagplaneError: Cause(500, "internal_error", "Internal", "internal"),
}
HTTP_CAUSES: Mapping[int, Cause] = {
    401: Cause(401, "authentication_error", "Unauthorized", "invalid_api_key"),
    404: Cause(404, _INVALID, "NotFound", "unknown_url"),
    405: Cause(405, _INVALID, "Validation", "method_not_allowed"),
    408: Cause(408, _INVALID, "Validation", "body_timeout"),
    413: Cause(413, _INVALID, "Validation", "payload_too_large"),
    CLIENT_GONE: Cause(CLIENT_GONE, _INVALID, "Cancelled", "client_gone"),
    500: Cause(500, "internal_error", "Internal", "internal"),
}
FAILURE_LABELS = sorted({c.tei_type.lower() for c in (*CAUSES.values(), *HTTP_CAUSES.values())})


def cause_of(error: RagplaneError) -> Cause:
    """The row of the nearest class in the error tree."""
    return next(CAUSES[kind] for kind in type(error).__mro__ if kind in CAUSES)


def dialect_of(path: str) -> Dialect:
    """The dialect that a path speaks; unknown paths by their prefix."""
    if path.startswith(("/v1/rerank", "/v2/")):
        return "cohere"
    return "openai" if path.startswith("/v1/") or path == "/embeddings" else "tei"


def error_response(
    request: Request,
    cause: Cause,
    message: str,
    *,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """The envelope of the dialect that the request speaks."""
    request.state.failure = cause.tei_type.lower()
    body = _envelope(dialect_of(request.url.path), cause, message, param)
    return JSONResponse(body, cause.status, headers=dict(headers or {}))


def _envelope(dialect: Dialect, cause: Cause, message: str, param: str | None) -> dict[str, object]:
    # A message may quote the input, and a lone surrogate cannot be sent.
    message = message.encode("utf-8", "backslashreplace").decode()
    if dialect == "openai":
        kind = cause.openai_type
        error = {"message": message, "type": kind, "code": cause.code, "param": param}
        return {"error": error}
    if dialect == "tei":
        return {"error": message, "error_type": cause.tei_type}
    return {"message": message}


async def on_ragplane(request: Request, error: Exception) -> Response:
    """The answer to a RagplaneError."""
    assert isinstance(error, RagplaneError)
    param = error.param if isinstance(error, InputError) else None
    cause, headers = cause_of(error), {}
    if cause.status in (429, 503):
        headers["Retry-After"] = str(max(1, math.ceil(getattr(error, "retry_after_s", 1.0))))
    return error_response(request, cause, str(error), param=param, headers=headers)


async def on_http(request: Request, error: Exception) -> Response:
    """The answer to an HTTPException: an unknown route, a wrong method, a body that is refused."""
    assert isinstance(error, HTTPException)
    cause = HTTP_CAUSES.get(error.status_code) or CAUSES[InputError]
    return error_response(request, cause, str(error.detail), headers=error.headers)
