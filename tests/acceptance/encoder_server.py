"""A server that embeds without a model, so that runs against it start at once."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from serve.fake import FakeEncoder

DIMENSIONS = 64
_fake = FakeEncoder(dimensions=DIMENSIONS)


class EncoderServer:
    """Speaks what HttpEncoder asks for. It can go down, and come back on the same port."""

    def __init__(self, *, pause_s: float = 0.0) -> None:
        """Each call takes `pause_s`."""
        self.calls = 0
        self.pause_s = pause_s
        self._port = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Its address, up or down."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *failure: object) -> None:
        self.down()

    def up(self) -> None:
        """Listen."""
        handler = type("EncoderHandler", (_Handler,), {"encoder": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def down(self) -> None:
        """Refuse connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Handler(BaseHTTPRequestHandler):
    encoder: EncoderServer

    def do_GET(self) -> None:
        model_type = {"embedding": {"dimensions": DIMENSIONS}}
        self._send({"fingerprint": asyncio.run(_fake.fingerprint()), "model_type": model_type})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.encoder.calls += 1
        time.sleep(self.encoder.pause_s)
        embedded = asyncio.run(_fake.embed(body["input"]))
        rows = [base64.b64encode(row.tobytes()).decode() for row in embedded.vectors]
        data = [{"embedding": row} for row in rows]
        self._send({"data": data, "usage": {"total_tokens": embedded.tokens}})

    def _send(self, value: dict[str, Any]) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("x-truncated-inputs", "0")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Tests are silent."""
