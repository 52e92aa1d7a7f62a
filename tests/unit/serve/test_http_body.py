"""Request bodies: their size, their time, and what is no JSON object."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.types import Message
from structlog.testing import capture_logs

from ragplane.core.config import Settings
from serve.http import body
from serve.http.app import create_app
from serve.local import LocalEncoder
from tests.unit.serve.http_app import connect


async def test_payload_limit(settings: Settings, encoder: LocalEncoder) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b" " * 20

    async with connect(settings, encoder, payload_limit_bytes=100) as client:
        assert (await client.post("/embed", json={"inputs": "a" * 50})).status_code == 200
        declared = await client.post("/embed", json={"inputs": "a" * 200})
        chunked = await client.post("/embed", content=chunks())
    for reply in (declared, chunked):
        assert (reply.status_code, reply.json()["error_type"]) == (413, "Validation")
        assert "100 bytes" in reply.json()["error"]


async def test_a_body_that_does_not_arrive(
    client: httpx.AsyncClient, encoder: LocalEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 8: a hung client is told, and held no permit."""
    monkeypatch.setattr(body, "BODY_TIMEOUT_S", 0.2)

    async def half() -> AsyncIterator[bytes]:
        yield b'{"inputs": '
        assert encoder.models[0].batcher.accepts
        await asyncio.sleep(60)

    reply = await client.post("/v1/embeddings", content=half())
    assert (reply.status_code, reply.json()["error"]["code"]) == (408, "body_timeout")
    assert reply.headers["connection"] == "close"


async def test_a_server_that_ends_waits_for_no_body(
    settings: Settings, encoder: LocalEncoder
) -> None:
    """Behaviour 12."""
    app = create_app(settings, encoder)
    sent: list[Message] = []

    async def never() -> Message:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/embed", "query_string": b"", "headers": []}
    call = asyncio.create_task(app(scope, never, send))
    await asyncio.sleep(0.05)
    call.cancel()
    await call
    assert sent[0]["status"] == 503


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{", "at character 1"),
        (b"inputs=a", "is not JSON"),
        (b'{"inputs": "a"} {}', "Extra data"),
        (b'{"inputs": NaN}', "NaN"),
        (b'{"inputs": [Infinity]}', "Infinity"),
        (b'{"inputs": [' + b"1" * 5000 + b"]}", "too long"),
        (b'{"inputs": "\xff"}', "UTF-8: byte 12"),
        (b"\xff\xfe{", "UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"inputs": ' + b"[" * 100_000, "nested too deeply"),
        (b'["inputs"]', "must be a JSON object"),
        (b'"inputs"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b"{}", "inputs: field required"),
        (b'{"inputs": 5}', "inputs: must be a text"),
        (b'{"inputs": [1e999]}', "inputs: must be a text"),
        (b'{"inputs": "a", "normalize": 1}', "normalize: input should be a valid boolean"),
        (b'{"inputs": "a", "dimensions": "5"}', "dimensions: input should be a valid integer"),
        (b'{"inputs": "a", "truncation_direction": "up"}', "truncation_direction: "),
    ],
)
async def test_what_is_wrong_is_said(client: httpx.AsyncClient, raw: bytes, said: str) -> None:
    reply = await client.post("/embed", content=raw)
    assert (reply.status_code, reply.json()["error_type"]) == (400, "Validation")
    assert said in reply.json()["error"]


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
async def test_the_content_type_does_not_matter(
    client: httpx.AsyncClient, content_type: str | None
) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    reply = await client.post("/embed", content=b'{"inputs": "a"}', headers=headers)
    assert reply.status_code == 200


async def test_huge_ids_are_refused(client: httpx.AsyncClient) -> None:
    raw = b'{"inputs": [' + b"9" * 4000 + b"]}"
    assert (await client.post("/embed", content=raw)).status_code == 422


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/embed", {"inputs": [[]] * 3000}),
        ("/v1/embeddings", {"input": [[1]] * 3000}),
        ("/predict", {"inputs": [["a"]] * 3000}),
        ("/v2/rerank", {"query": "a", "documents": [1] * 3000}),
        ("/rerank", {"query": "a", "texts": [{}] * 3000}),
    ],
)
async def test_a_long_list_is_refused_before_its_items_are_looked_at(
    client: httpx.AsyncClient, path: str, content: object
) -> None:
    """Behaviour 26: what is checked on the event loop takes no time."""
    reply = await client.post(path, json=content)
    if path == "/v2/rerank":  # a list of numbers could be token ids: refused at the first of them
        assert reply.status_code == 400
    else:
        assert reply.status_code == 422
        assert "3000 items are over the limit of 2048" in reply.text


async def test_a_lone_surrogate_is_read_and_named(client: httpx.AsyncClient) -> None:
    reply = await client.post("/embed", content=b'{"inputs": ["fine", "\\ud800"]}')
    assert (reply.status_code, reply.json()["error_type"]) == (422, "Tokenizer")


async def test_a_client_that_left_while_it_was_answered_is_no_defect(
    settings: Settings, encoder: LocalEncoder
) -> None:
    """Behaviour 6: counted, not logged as a failure of the server."""
    app = create_app(settings, encoder)
    closed = RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed")

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        raise closed

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/info",
        "headers": [],
        "query_string": b"",
    }
    with capture_logs() as logs:
        await app(scope, receive, send)
    assert logs == []
