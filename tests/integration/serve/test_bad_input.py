"""Everything that goes wrong on the way in, against one real server: a clear answer for each."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.integration.serve.server_process import Server, ready

REQUESTS = 10_000
FAMILY = "\U0001f469‍\U0001f469‍\U0001f467"


@pytest.fixture(scope="module")
def open_files() -> Iterator[int]:
    """How many connections this process, and one that it starts, may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard - 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def server(model_home: Path, open_files: int) -> Iterator[Server]:
    with ready(model_home, "--max-concurrent-requests", "64") as server:
        yield server
        reply = httpx.get(f"{server.url}/health")
        assert reply.status_code == 200  # whatever came, it still lives
        assert server.end()[0] == 0


TEXTS = [
    pytest.param('""', 400, id="empty"),
    pytest.param('"   "', 200, id="whitespace"),
    pytest.param(r'"\t\n\u00a0\u3000"', 200, id="other whitespace"),
    pytest.param(r'"\ud800"', 422, id="lone high surrogate"),
    pytest.param(r'"a \udfff b"', 422, id="lone low surrogate"),
    pytest.param(r'"\ud83d\ude00"', 200, id="surrogate pair"),
    pytest.param(r'"\u0000"', 200, id="NUL"),
    pytest.param(r'"a\u0000b"', 200, id="NUL inside"),
    pytest.param(f'"{FAMILY}"', 200, id="emoji joined by ZWJ"),
    pytest.param('"שלום עולם مرحبا"', 200, id="RTL"),
    pytest.param(r'"\u202eabc\u202c"', 200, id="direction override"),
    pytest.param(r'"\ufeff\u200b\ufffe"', 200, id="BOM and nothing visible"),
    pytest.param('"' + "e\u0301" * 5000 + '"', 200, id="combining marks"),
    pytest.param('"' + "a" * 1_000_000 + '"', 200, id="1 MB of one letter"),
    pytest.param('"' + "a " * 500_000 + '"', 200, id="1 MB of one word"),
]
# Where a text goes in each body. A query has to have words, so whitespace is not one.
PLACES = [
    ("/v1/embeddings", '{"input": %s}'),
    ("/v1/embeddings", '{"input": ["fine", %s]}'),
    ("/embed", '{"inputs": [%s]}'),
    ("/embed_all", '{"inputs": %s}'),
    ("/rerank", '{"query": "q", "texts": ["fine", %s]}'),
    ("/v2/rerank", '{"query": "q", "documents": [{"text": %s}]}'),
    ("/similarity", '{"inputs": {"source_sentence": "q", "sentences": [%s]}}'),
]
ENVELOPES = ({"error"}, {"error", "error_type"}, {"message"})


@pytest.mark.parametrize(("text", "status"), TEXTS)
@pytest.mark.parametrize(("path", "body"), PLACES)
def test_any_text_gets_a_clear_answer(
    server: Server, path: str, body: str, text: str, status: int
) -> None:
    """Behaviour 24."""
    reply = httpx.post(f"{server.url}{path}", content=(body % text).encode(), timeout=60)
    assert reply.status_code == status, reply.text[:200]
    assert status == 200 or set(reply.json()) in ENVELOPES
    assert "null" not in reply.text or status != 200


@pytest.mark.parametrize(("text", "status"), TEXTS)
def test_any_query_gets_a_clear_answer(server: Server, text: str, status: int) -> None:
    """Behaviour 24: the tokeniser leaves nothing of some texts, and they cannot be a query."""
    body = f'{{"query": {text}, "texts": ["a"]}}'.encode()
    reply = httpx.post(f"{server.url}/rerank", content=body, timeout=60)
    assert reply.status_code in {status, 400}
    assert reply.status_code == 200 or set(reply.json()) == {"error", "error_type"}


@pytest.mark.parametrize(
    ("text", "status"), [text for text in TEXTS if "1 MB of one word" not in str(text.id)]
)
def test_any_text_is_tokenised(server: Server, text: str, status: int) -> None:
    """Behaviour 24."""
    body = f'{{"inputs": [{text}]}}'.encode()
    assert httpx.post(f"{server.url}/tokenize", content=body).status_code == status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nope", 404),
        ("POST", "/v1/nope", 404),
        ("POST", "/v2/nope", 404),
        ("POST", "/v1/chat/completions", 404),
        ("GET", "//embed", 404),
        ("GET", "/embed/%2e%2e/info", 404),
        ("GET", "/embed", 405),
        ("PUT", "/v1/embeddings", 405),
        ("DELETE", "/v2/rerank", 405),
        ("PATCH", "/info", 405),
        ("OPTIONS", "/health", 405),
    ],
)
def test_unknown_routes_and_wrong_methods(
    server: Server, method: str, path: str, status: int
) -> None:
    reply = httpx.request(method, f"{server.url}{path}")
    assert reply.status_code == status
    assert set(reply.json()) in ENVELOPES
    assert ("allow" in reply.headers) == (status == 405)


async def test_a_gigabyte_is_refused_before_it_is_sent(server: Server) -> None:
    head = b"Content-Length: 1073741824\r\n"
    reader, writer = await opened(server, head, b'{"inputs": "')
    status, _, body = await asyncio.wait_for(read_reply(reader), 5)
    assert (status, b"over the limit of 8000000 bytes" in body) == (413, True)
    writer.close()


async def test_an_endless_chunked_body_is_refused_at_the_limit(server: Server) -> None:
    """The answer reaches a client that is still sending."""
    head = b"Transfer-Encoding: chunked\r\n"
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    reader, writer = await opened(server, head, *[chunk] * 20)
    status, _, _ = await asyncio.wait_for(read_reply(reader), 20)
    assert status == 413
    writer.close()


async def test_half_a_body_holds_nobody_up(server: Server) -> None:
    """Behaviour 8: hung clients, more than there are permits, cost others nothing."""
    hung = [await opened(server, b"Content-Length: 100\r\n", b'{"inputs":') for _ in range(100)]
    async with httpx.AsyncClient(base_url=server.url) as client:
        for _ in range(10):
            reply = await client.post("/embed", json={"inputs": "a"})
            assert reply.status_code == 200
            assert float(reply.headers["x-total-time"]) < 5000
    for _, writer in hung:
        writer.close()


async def test_half_a_body_ends_with_408(server: Server) -> None:
    started_s = time.monotonic()
    reader, writer = await opened(server, b"Content-Length: 100\r\n", b'{"inputs":')
    answer = await asyncio.wait_for(reader.read(), 60)  # until the server closes the connection
    writer.close()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert 29 < time.monotonic() - started_s < 40


async def test_ten_thousand_tiny_requests_at_once(server: Server, open_files: int) -> None:
    """Behaviour 8: what is too much gets 429 with Retry-After; nothing is lost; it lives on."""
    body = json.dumps({"inputs": "tiny"}).encode()
    seen: Counter[int] = Counter()
    started_s = time.monotonic()
    host, port = urlsplit(server.url).netloc.split(":")

    may_open = asyncio.Semaphore(open_files)

    async def ask() -> None:
        async with may_open:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(request(b"Content-Length: %d\r\n" % len(body)) + body)
            status, headers, _ = await read_reply(reader)
            writer.close()
        seen[status] += 1
        assert status == 200 or int(headers["retry-after"]) >= 1

    await asyncio.gather(*(ask() for _ in range(REQUESTS)))
    assert seen.keys() == {200, 429}
    assert seen.total() == REQUESTS
    assert time.monotonic() - started_s < 60


def request(headers: bytes) -> bytes:
    """The head of a request to /embed."""
    return b"POST /embed HTTP/1.1\r\nHost: server\r\n" + headers + b"\r\n"


async def opened(
    server: Server, headers: bytes, *parts: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which a request was begun."""
    host, port = urlsplit(server.url).netloc.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request(headers))
    for part in parts:
        writer.write(part)
    return reader, writer


async def read_reply(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body of one answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.split(": ", 1) for line in head[1:] if line)
    headers = {name.lower(): value for name, value in pairs}
    body = await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split()[1]), headers, body
