"""Reading a request body: bounded in size and in time, and refused with a message that helps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import NoReturn, TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ragplane.core.errors import InputError, LimitError
from serve.http.errors import CLIENT_GONE

BODY_TIMEOUT_S = 30.0
B = TypeVar("B", bound=BaseModel)


async def read_body(request: Request, kind: type[B], *, limit_bytes: int, most_items: int) -> B:
    """The JSON object that `request` carries, whatever its content type says.

    Raises InputError for what is no JSON or does not fit `kind`, LimitError for a list of over
    `most_items` that are not token ids; HTTPException 413 over `limit_bytes`, 408 when the body
    does not arrive in BODY_TIMEOUT_S, 499 when the client left.
    """
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            raw = await _read(request, limit_bytes)
    except TimeoutError as error:
        message = f"the body did not arrive within {BODY_TIMEOUT_S:g} s"
        raise HTTPException(408, message, {"Connection": "close"}) from error
    value = _parse(raw)
    _check_lists(value, most_items)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        _refuse(error)


async def _read(request: Request, limit_bytes: int) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limit_bytes:
        _too_large(limit_bytes)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(CLIENT_GONE, "the client closed the connection")
        part: bytes = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > limit_bytes:
            _too_large(limit_bytes)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large(limit_bytes: int) -> NoReturn:
    # The connection stays open: closed under a client that still sends, it would lose the answer.
    raise HTTPException(413, f"the body is over the limit of {limit_bytes} bytes")


def _parse(raw: bytes) -> dict[str, object]:
    if not raw.strip():
        raise InputError("the body is empty; a JSON object is needed")
    try:
        value: object = orjson.loads(raw)
    except orjson.JSONDecodeError:  # or a lone surrogate, which the tokenizer is to refuse
        value = _parse_slowly(raw)
    if not isinstance(value, dict):
        raise InputError("the body must be a JSON object")
    return value


def _parse_slowly(raw: bytes) -> object:
    """By Python's own reader, which takes lone surrogates and says what is wrong."""
    try:
        value: object = _JSON.decode(raw.decode())
    except UnicodeDecodeError as error:
        raise InputError(f"the body is not UTF-8: byte {error.start} does not fit") from error
    except json.JSONDecodeError as error:
        message = f"the body is not JSON: {error.msg}, at character {error.pos}"
        raise InputError(message) from error
    except RecursionError as error:
        raise InputError("the body is nested too deeply") from error
    except ValueError as error:  # Python refuses integers of thousands of digits
        raise InputError("the body holds a number that is too long") from error
    return value


def _check_lists(value: Mapping[str, object], most_items: int) -> None:
    """Refuse long lists before each item is looked at: that would hold up the event loop."""
    for name, field in value.items():
        if not isinstance(field, list) or len(field) <= most_items or isinstance(field[0], int):
            continue
        message = f"{name}: {len(field)} items are over the limit of {most_items}"
        raise LimitError(message, param=name)


def _no_constant(name: str) -> NoReturn:
    raise InputError(f"the body is not JSON: {name} is no JSON number")


_JSON = json.JSONDecoder(parse_constant=_no_constant)


def _refuse(error: ValidationError) -> NoReturn:
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    param = str(fault["loc"][0]) if fault["loc"] else None
    message = fault["msg"][:1].lower() + fault["msg"][1:]
    raise InputError(f"{place}: {message}", param=param) from error
