"""One entry for each route: what it reads, what it answers. Routing and OpenAPI are made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from serve.http.body import read_body
from serve.http.services import Services, services

B = TypeVar("B", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Operation:
    """`answer` is the type of the 200 answer; None: text. `inference` routes carry its headers."""

    method: Literal["GET", "POST"]
    paths: tuple[str, ...]
    endpoint: Callable[[Request], Awaitable[Response]]
    summary: str
    answer: Any
    body: type[BaseModel] | None = None
    inference: bool = False


def get(
    *paths: str, answer: Any
) -> Callable[[Callable[[Services], Awaitable[Response]]], Operation]:
    """Make a function of the services the answer to GET on `paths`."""

    def make(handler: Callable[[Services], Awaitable[Response]]) -> Operation:
        async def endpoint(request: Request) -> Response:
            return await handler(services(request))

        return Operation("GET", paths, endpoint, _summary(handler), answer)

    return make


def post(
    *paths: str, body: type[B], answer: Any, inference: bool = True
) -> Callable[[Callable[[Request, B, Services], Awaitable[Response]]], Operation]:
    """Make a function of the request and its `body` the answer to POST on `paths`."""

    def make(handler: Callable[[Request, B, Services], Awaitable[Response]]) -> Operation:
        async def endpoint(request: Request) -> Response:
            at = services(request)
            read = await read_body(
                request,
                body,
                limit_bytes=at.settings.payload_limit_bytes,
                most_items=at.settings.max_client_batch_size,
            )
            return await handler(request, read, at)

        return Operation("POST", paths, endpoint, _summary(handler), answer, body, inference)

    return make


def _summary(handler: Callable[..., Any]) -> str:
    return (handler.__doc__ or "").splitlines()[0]
