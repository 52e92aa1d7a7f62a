"""The OpenAPI document, made of the operations that the application routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import TypeAdapter

from ragplane.core import __version__
from serve.batching.work import LANES
from serve.http.answers import CohereError, OpenAIError, TeiError
from serve.http.errors import CAUSES, CLIENT_GONE, HTTP_CAUSES, Dialect, dialect_of
from serve.http.operations import Operation

_REF = "#/components/schemas/{model}"
_ENVELOPES: Mapping[Dialect, Any] = {
    "openai": OpenAIError,
    "tei": TeiError,
    "cohere": CohereError,
}
_TIME = {"type": "string", "pattern": r"^\d+\.\d{3}$", "description": "Milliseconds."}
_COUNT = {"type": "string", "pattern": r"^\d+$"}
_EVERY_HEADER = {"x-request-id": {"type": "string"}, "x-total-time": _TIME}
_INFERENCE_HEADERS = {
    "x-model-fingerprint": {"type": "string"},
    "x-compute-tokens": _COUNT,
    "x-truncated-inputs": _COUNT,
    "x-tokenization-time": _TIME,
    "x-queue-time": _TIME,
    "x-inference-time": _TIME,
}
RESPONSE_HEADERS = (*_EVERY_HEADER, *_INFERENCE_HEADERS)
_TERMS = {
    "x-lane": {"type": "string", "enum": list(LANES)},
    "x-tenant": {"type": "string", "pattern": "^[!-~]([ -~]{0,126}[!-~])?$"},
    "x-deadline-ms": {"type": "integer", "minimum": 0, "maximum": 999_999_999_999},
    "traceparent": {"type": "string"},
}
_Mode = Literal["validation", "serialization"]
_Schemas = Mapping[tuple[Any, _Mode], Mapping[str, Any]]


def document(operations: Iterable[Operation], *, needs_key: bool) -> dict[str, Any]:
    """OpenAPI 3.1 of `operations`; with `needs_key`, all but the probes want a bearer token."""
    listed = tuple(operations)
    schemas, definitions = _schemas(listed)
    paths = {
        path: {operation.method.lower(): _operation(operation, path, schemas)}
        for operation in listed
        for path in operation.paths
    }
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Ragplane", "version": __version__},
        "paths": paths,
        "components": {"schemas": definitions.get("$defs", {})},
    }
    if needs_key:
        described["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"key": []}]
    return described


def _schemas(operations: Iterable[Operation]) -> tuple[_Schemas, dict[str, Any]]:
    """Schemas by type, bodies as they are read and answers as they are written; and their parts."""
    bodies = {operation.body for operation in operations if operation.body is not None}
    answers = {operation.answer for operation in operations if operation.answer is not None}
    kinds: list[tuple[Any, _Mode]] = [(kind, "validation") for kind in bodies]
    kinds += [(kind, "serialization") for kind in (*answers, *_ENVELOPES.values())]
    adapters = [(kind, mode, TypeAdapter(kind)) for kind, mode in sorted(kinds, key=str)]
    schemas, definitions = TypeAdapter.json_schemas(adapters, ref_template=_REF)
    return schemas, definitions


def _operation(operation: Operation, path: str, schemas: _Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}{path.replace('/', '_')}",
        "summary": operation.summary,
        "responses": {
            "200": _answer(operation, schemas),
            **_errors(operation, path, schemas),
        },
    }
    if operation.body is not None:
        content = {"application/json": {"schema": schemas[operation.body, "validation"]}}
        described["requestBody"] = {"required": True, "content": content}
    if operation.inference:
        described["parameters"] = [
            {"name": name, "in": "header", "required": False, "schema": schema}
            for name, schema in _TERMS.items()
        ]
    if path in ("/health", "/ready"):
        described["security"] = []
    return described


def _answer(operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    headers = _EVERY_HEADER | (_INFERENCE_HEADERS if operation.inference else {})
    if operation.answer is None:
        content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": schemas[operation.answer, "serialization"]}}
    return {"description": "The answer.", "content": content, "headers": _headers(headers)}


def _errors(operation: Operation, path: str, schemas: _Schemas) -> dict[str, Any]:
    causes = (*CAUSES.values(), *HTTP_CAUSES.values())
    statuses = {cause.status for cause in causes} - {CLIENT_GONE}
    if operation.body is None:
        statuses &= {401, 404, 405, 424, 500, 503}
    envelope = schemas[_ENVELOPES[dialect_of(path)], "serialization"]
    if path in ("/health", "/ready"):
        envelope = schemas[operation.answer, "serialization"]
    return {
        str(status): {
            "description": ", ".join(sorted({c.code for c in causes if c.status == status})),
            "content": {"application/json": {"schema": envelope}},
            "headers": _headers(_EVERY_HEADER),
        }
        for status in sorted(statuses)
    }


def _headers(schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {"required": True, "schema": schema} for name, schema in schemas.items()}
