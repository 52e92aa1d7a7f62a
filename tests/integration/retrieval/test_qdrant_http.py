"""What goes over the wire to a Qdrant server: a local server replays answers and keeps requests.

The contract is Qdrant's own description (`qdrant_contract`): every body sent is validated against
it, and the client parses every answer through it. The answers are written by hand after that
description; they were not recorded from a server.
"""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import orjson
import pytest
from pydantic import ValidationError

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, UnavailableError
from retrieval.stores.base import CorpusKey
from retrieval.stores.open import open_at
from retrieval.stores.qdrant.client import ServerEngine
from retrieval.stores.qdrant.engine import EVERYTHING, Point, RefusedError, Sparse, Where
from tests.integration.retrieval.qdrant_contract import validate

ONE, TWO = UUID(int=1), UUID(int=2)
DONE = {"operation_id": 1, "status": "completed"}
TENANT = {"key": "tenant", "match": {"value": "t"}}


class Server(ThreadingHTTPServer):
    """Answers each (method, path) with what stands in `answers`, in turn; the last one again."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[tuple[str, str], list[Any]] = {
            ("GET", "/"): [{"title": "qdrant", "version": "1.19.2"}]
        }
        self.requests: list[tuple[str, str, Any]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def answer(self, method: str, path: str, *results: Any) -> None:
        """Let the request be answered by these results, or by (status, error) pairs."""
        self.answers[method, path] = [
            result if isinstance(result, tuple) else {"result": result, "status": "ok", "time": 0.1}
            for result in results
        ]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def _reply(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = orjson.loads(self.rfile.read(length)) if length else None
        key = self.command, self.path
        self.server.requests.append((*key, body))
        self.server.headers.append({k.lower(): v for k, v in self.headers.items()})
        results = self.server.answers.get(key, [(404, "Not found")])
        result = results.pop(0) if len(results) > 1 else results[0]
        status = 200
        if isinstance(result, tuple):
            status, error = result
            result = {"status": {"error": error}, "time": 0.1}
        payload = orjson.dumps(result)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _reply

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
    for method, path, body in server.requests:
        if body is not None:
            validate(method, path, body)


@pytest.fixture
async def engine(server):
    engine = await ServerEngine.open(f"http://{server.host}", "key")
    server.requests.clear()
    yield engine
    await engine.aclose()


def test_the_contract_refuses_what_the_description_lacks():
    for path, body in {"/query": {"query": [1.0], "top": 5}, "": {"ids": [{}]}}.items():
        with pytest.raises(ValidationError):
            validate("POST", f"/collections/c/points{path}", body)


async def test_an_answer_that_the_description_lacks_is_an_error(server, engine):
    server.answer("POST", "/collections/c/points/query", {"points": [{"id": str(ONE)}]})
    with pytest.raises(UnavailableError, match="cannot search"):
        await engine.search("c", [1.0], EVERYTHING, 5)


async def test_the_version_is_asked_and_the_key_is_sent(server):
    engine = await ServerEngine.open(f"http://{server.host}", "secret")
    await engine.aclose()
    assert server.requests == [("GET", "/", None)]
    assert server.headers[0]["api-key"] == "secret"


async def test_an_old_server_is_refused(server, tmp_path):
    server.answers["GET", "/"] = [{"title": "qdrant", "version": "1.18.3"}]
    with pytest.raises(ConfigError, match=rf"Qdrant at {server.host} is 1\.18\.3, 1\.19 or later"):
        await open_at(f"qdrant+http://{server.host}", Settings(home=tmp_path), None)


async def test_a_collection_is_made_with_both_vectors_and_all_indexes(server, engine):
    """Behaviour 23."""
    server.answer("GET", "/collections/c/exists", {"exists": False})
    server.answer("PUT", "/collections/c", True)
    server.answer("PUT", "/collections/c/index?wait=true", DONE)
    await engine.create("c", 384)
    exists, create, *indexes = server.requests
    assert exists == ("GET", "/collections/c/exists", None)
    assert create == (
        "PUT",
        "/collections/c",
        {
            "vectors": {"dense": {"size": 384, "distance": "Cosine"}},
            "sparse_vectors": {"sparse": {"modifier": "idf"}},
        },
    )
    assert {path for _, path, _ in indexes} == {"/collections/c/index?wait=true"}
    assert [(body["field_name"], body["field_schema"]) for _, _, body in indexes] == [
        ("tenant", {"type": "keyword", "is_tenant": True}),
        ("corpus", "keyword"),
        ("kind", "keyword"),
        ("source", "keyword"),
        ("document_id", "keyword"),
        ("generation", "integer"),
        ("versions[].id", "keyword"),
    ]


async def test_a_collection_that_another_process_made_is_fine(server, engine):
    server.answer("GET", "/collections/c/exists", {"exists": False})
    server.answer("PUT", "/collections/c", (409, "already exists"))
    server.answer("PUT", "/collections/c/index?wait=true", DONE)
    await engine.create("c", 384)


async def test_the_alias_is_switched_in_one_request(server, engine):
    """Behaviour 23."""
    held = {"aliases": [{"alias_name": "a", "collection_name": "a__m__8__v1"}]}
    server.answer("GET", "/aliases", held)
    server.answer("POST", "/collections/aliases", True)
    await engine.switch_alias("a", "a__m__8__v2")
    await engine.switch_alias("b", "b__m__8__v1")
    switches = [body["actions"] for method, _, body in server.requests if method == "POST"]
    created = {"create_alias": {"collection_name": "a__m__8__v2", "alias_name": "a"}}
    assert switches == [
        [{"delete_alias": {"alias_name": "a"}}, created],
        [{"create_alias": {"collection_name": "b__m__8__v1", "alias_name": "b"}}],
    ]


async def test_points_are_written_in_batches_and_waited_for(server, engine):
    """Behaviour 19."""
    path = "/collections/c/points?wait=true"
    server.answer("PUT", path, DONE)
    point = Point(ONE, {"kind": "chunk"}, [0.5, 1.0], Sparse([7], [1.5]))
    bare = Point(TWO, {"kind": "document"})
    await engine.upsert("c", [point, bare])
    await engine.upsert("c", [bare] * 130)
    bodies = [
        body["points"] for method, sent, body in server.requests if (method, sent) == ("PUT", path)
    ]
    assert [len(points) for points in bodies] == [2, 64, 64, 2]
    assert bodies[0] == [
        {
            "id": str(ONE),
            "vector": {"dense": [0.5, 1.0], "sparse": {"indices": [7], "values": [1.5]}},
            "payload": {"kind": "chunk"},
        },
        {"id": str(TWO), "vector": {}, "payload": {"kind": "document"}},
    ]


async def test_points_are_deleted_by_filter_and_waited_for(server, engine):
    """Behaviour 22."""
    path = "/collections/c/points/delete?wait=true"
    server.answer("POST", path, DONE)
    await engine.delete("c", Where({"tenant": "t"}, {"versions[].id": "2-ab"}, [ONE]))
    condition = {
        "must": [TENANT, {"has_id": [str(ONE)]}],
        "must_not": [{"key": "versions[].id", "match": {"value": "2-ab"}}],
    }
    assert server.requests == [("POST", path, {"filter": condition})]


async def test_a_dense_query(server, engine):
    path = "/collections/c/points/query"
    hit = {"id": str(ONE), "version": 1, "score": 0.5, "payload": {"document_id": "d"}}
    server.answer("POST", path, {"points": [hit]})
    [found] = await engine.search("c", [1.0, 0.0], Where({"tenant": "t"}), 200)
    assert (found.id, found.score, found.payload) == (ONE, 0.5, {"document_id": "d"})
    [(_, _, body)] = server.requests
    assert body == {
        "query": {"nearest": [1.0, 0.0]},
        "using": "dense",
        "filter": {"must": [TENANT]},
        "params": {"hnsw_ef": 400},
        "limit": 200,
        "with_payload": ["document_id", "versions[].id"],
        "with_vector": False,
    }


async def test_a_sparse_query_counts_the_idf_over_the_tenant(server, engine):
    path = "/collections/c/points/query"
    server.answer("POST", path, {"points": []})
    assert await engine.search("c", Sparse([7, 9], [1.0, 1.0]), Where({"tenant": "t"}), 5) == []
    [(_, _, body)] = server.requests
    assert body["query"] == {"nearest": {"indices": [7, 9], "values": [1.0, 1.0]}}
    assert body["using"] == "sparse"
    assert body["params"] == {"idf": {"corpus": {"must": [TENANT]}}}


async def test_points_are_read_by_id_and_page_by_page(server, engine):
    record = {"id": str(ONE), "payload": {"kind": "chunk"}}
    server.answer("POST", "/collections/c/points", [record])
    server.answer(
        "POST",
        "/collections/c/points/scroll",
        {"points": [record], "next_page_offset": str(TWO)},
        {"points": [record], "next_page_offset": None},
    )
    [found] = await engine.retrieve("c", [ONE, TWO])
    assert (found.id, found.payload) == (ONE, {"kind": "chunk"})
    assert server.requests[0][2]["ids"] == [str(ONE), str(TWO)]
    pages = [page async for page in engine.scroll("c", EVERYTHING, ["kind"])]
    assert [len(page) for page in pages] == [1, 1]
    first, second = (body for _, path, body in server.requests if path.endswith("scroll"))
    assert (first["filter"], first["limit"], first["with_payload"]) == ({}, 512, ["kind"])
    assert "offset" not in first
    assert second["offset"] == str(TWO)


async def test_a_collection_that_is_not_there_has_no_points(server, engine):
    assert await engine.retrieve("absent", [ONE]) == []
    with pytest.raises(UnavailableError, match="404 Not found"):
        await engine.search("absent", [1.0], EVERYTHING, 5)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RefusedError),
        (413, RefusedError),
        (401, ConfigError),
        (403, ConfigError),
        (429, UnavailableError),
        (500, UnavailableError),
        (503, UnavailableError),
    ],
)
async def test_an_error_names_the_server_and_the_cause(server, engine, status, kind):
    """Behaviour 25."""
    server.answer("PUT", "/collections/c/points?wait=true", (status, "the true cause"))
    message = rf"Qdrant at {server.host} cannot write points: {status} the true cause$"
    with pytest.raises(kind, match=message) as caught:
        await engine.upsert("c", [Point(ONE, {})])
    assert type(caught.value) is kind


async def test_a_server_that_goes_away_is_named(server, tmp_path):
    """Behaviour 25."""
    store = await open_at(f"qdrant+http://{server.host}", Settings(home=tmp_path), None)
    server.shutdown()
    server.server_close()
    key = CorpusKey("t", "manuals")
    with pytest.raises(UnavailableError, match=f"Qdrant at {server.host} cannot read points: Conn"):
        await store.fingerprint(key)
    await store.aclose()
