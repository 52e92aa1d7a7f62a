"""A load generator that takes little of the CPUs it measures: HTTP/1.1 over raw connections.

The same for every server: requests are made before the clock starts, and answers are only cut at
their content-length while it runs.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_END_OF_HEAD = b"\r\n\r\n"


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int


class Response(NamedTuple):
    """A status and the bytes of the body."""

    status: int
    body: bytes


@dataclass
class Load:
    """What came of a run: answers in the order of the requests, and how long each took."""

    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    bodies: dict[int, bytes] = field(default_factory=dict)


def post(path: str, body: Any, headers: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a request with a JSON body."""
    content = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: bench", "content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    lines += [f"content-length: {len(content)}"]
    return "\r\n".join(lines).encode() + _END_OF_HEAD + content


class Connection(asyncio.Protocol):
    """One request at a time on one kept connection."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._body_at = self._end = 0
        self._answer: asyncio.Future[Response] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self, request: bytes) -> asyncio.Future[Response]:
        """Send; the future holds the answer. Fails with ConnectionError if the server hangs up."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        if self._transport.is_closing():
            self._answer.set_exception(ConnectionError("the server has closed the connection"))
        else:
            self._transport.write(request)
        return self._answer

    def close(self) -> None:
        """Hang up, also in the middle of an answer."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._end:
            head_end = self._received.find(_END_OF_HEAD)
            if head_end < 0:
                return
            self._body_at = head_end + len(_END_OF_HEAD)
            self._end = self._body_at + _content_length(bytes(self._received[:head_end]))
        if len(self._received) >= self._end and self._answer is not None:
            status = int(self._received[9:12])
            answer = Response(status, bytes(self._received[self._body_at : self._end]))
            self._received.clear()
            self._end = 0
            if not self._answer.done():
                self._answer.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server hung up"))


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise ConnectionError("an answer without content-length")


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[Connection]:
    """A connection, closed at the end."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, address.host, address.port)
    try:
        yield connection
    finally:
        connection.close()


async def ask(address: Address, request: bytes) -> bytes:
    """The body of one answer on a connection of its own. SystemExit unless it is 200."""
    async with connected(address) as connection:
        return _require_ok(await connection.send(request))


async def closed_loop(
    address: Address, requests: Iterable[bytes], *, clients: int, limit_s: float = float("inf")
) -> Load:
    """Send all `requests`, `clients` at once, or what `limit_s` allows.

    SystemExit for any answer but 200: a benchmark of errors is worth nothing.
    """
    load, waiting = Load(), enumerate(requests)
    started = time.perf_counter()

    async def client() -> None:
        async with connected(address) as connection:
            for index, request in waiting:
                sent = time.perf_counter()
                if sent - started > limit_s:
                    return
                load.bodies[index] = _require_ok(await connection.send(request))
                load.latencies_ms.append((time.perf_counter() - sent) * 1000)

    await asyncio.gather(*(client() for _ in range(clients)))
    load.seconds = time.perf_counter() - started
    return load


async def open_loop(address: Address, requests: Iterable[bytes], at_s: Iterable[float]) -> Load:
    """Send each request at its own time, whether or not earlier ones were answered."""
    load = Load()
    started = time.perf_counter()

    async def one(index: int, request: bytes, due_s: float) -> None:
        await asyncio.sleep(started + due_s - time.perf_counter())
        async with connected(address) as connection:
            load.bodies[index] = _require_ok(await connection.send(request))
        load.latencies_ms.append((time.perf_counter() - started - due_s) * 1000)

    due = zip(requests, at_s, strict=False)
    await asyncio.gather(*(one(i, request, when) for i, (request, when) in enumerate(due)))
    load.seconds = time.perf_counter() - started
    return load


def _require_ok(response: Response) -> bytes:
    if response.status != 200:
        raise SystemExit(f"status {response.status}: {response.body[:300].decode()}")
    return response.body
