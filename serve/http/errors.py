"""Which error gets which status, and how each dialect words it. The one table of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

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
    if path.endswith("/rerank") and path != "/rerank":
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


def add_handlers(app: FastAPI) -> None:
    """Answer errors in the dialect of their route. Defects are left to the middleware."""

    @app.exception_handler(RagplaneError)
    async def on_ragplane(request: Request, error: RagplaneError) -> JSONResponse:
        param = error.param if isinstance(error, InputError) else None
        cause, headers = cause_of(error), {}
        if cause.status in (429, 503):
            headers["Retry-After"] = str(math.ceil(getattr(error, "retry_after_s", 1.0)))
        return error_response(request, cause, str(error), param=param, headers=headers)

    @app.exception_handler(RequestValidationError)
    async def on_validation(request: Request, error: RequestValidationError) -> JSONResponse:
        fault = error.errors()[0]
        # A place is ("body", field, ...), or ("body", offset) where the JSON itself is broken.
        names = [part for part in fault["loc"][1:] if isinstance(part, str)]
        param = names[0] if names else None
        message = f"{param}: {fault['msg']}" if param else str(fault["msg"])
        return error_response(request, CAUSES[InputError], message, param=param)

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> JSONResponse:
        cause = HTTP_CAUSES.get(error.status_code) or CAUSES[InputError]
        return error_response(request, cause, str(error.detail), headers=error.headers)
