"""A vision endpoint on the loopback interface that does what a test tells it to."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROMPT_TOKENS, COMPLETION_TOKENS = 1234, 56


@dataclass(slots=True)
class VlmServer:
    """`play` holds what is done with each request in turn, the last for ever."""

    play: list[Callable[[Handler], None]]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)


class Handler(BaseHTTPRequestHandler):
    """Reads a request and hands it to the play."""

    play: VlmServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.play.requests.append({"path": self.path, **body})
        self.play.headers.append({name.lower(): value for name, value in self.headers.items()})
        number = min(len(self.play.requests), len(self.play.play))
        with contextlib.suppress(ConnectionError):  # the client does not wait for ever
            self.play.play[number - 1](self)

    def send(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Tests are silent."""


def says(text: str | None, finish_reason: str = "stop") -> Callable[[Handler], None]:
    """Answer with a completion."""
    completion = {
        "choices": [{"message": {"content": text}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS},
    }
    return lambda handler: handler.send(200, json.dumps(completion).encode())


def answers(status: int, content: bytes = b"", **headers: str) -> Callable[[Handler], None]:
    """Answer with just this."""
    return lambda handler: handler.send(status, content, **headers)


def hangs(handler: Handler) -> None:
    """Never answer."""
    handler.play.stopped.wait(30)


def drips(handler: Handler) -> None:
    """Send a byte now and then, so that no single read takes long."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    while not handler.play.stopped.wait(0.02):
        handler.wfile.write(b" ")


def closes_midway(handler: Handler) -> None:
    """Promise more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"mess')


@contextlib.contextmanager
def playing(*play: Callable[[Handler], None]) -> Iterator[VlmServer]:
    """A server that listens; `url` ends in /v1."""
    state = VlmServer(list(play))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("PlayHandler", (Handler,), {"play": state}))
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield state
    finally:
        state.stopped.set()
        server.shutdown()
        server.server_close()  # waits for the handlers
        thread.join()
