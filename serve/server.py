"""The server process: bind, load, warm up, serve, drain."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
from collections.abc import Iterator

import structlog
import uvicorn
import uvloop

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError
from serve.http.app import create_app
from serve.local import LocalEncoder

_WARM_UP_S = 30.0
_LAST_RESPONSES_S = 5
_BACKLOG = 2048
_log = structlog.get_logger()


def run(settings: Settings, *, host: str, port: int) -> int:
    """Serve until SIGTERM or SIGINT, then drain for `drain_s` at most; the exit status.

    Port 0 takes a free one. Raises ConfigError if the address cannot be bound, and ModelError.
    """
    with bind(host, port) as listener:
        return uvloop.run(_serve(settings, listener))


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. It is bound before the models load, so a taken port is told at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigError(f"host {host}: {error.strerror}") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        reason = "is in use" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
        raise ConfigError(f"port {port} on {host} {reason}") from error
    return listener


async def _serve(settings: Settings, listener: socket.socket) -> int:
    encoder = await LocalEncoder.open(settings)
    try:
        await _warm_up(encoder)
        config = uvicorn.Config(
            create_app(settings, encoder),
            log_level=settings.log_level.lower(),
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_LAST_RESPONSES_S,
            http="httptools",
        )
        server = _Server(config, encoder, settings.drain_s)
        host, port = listener.getsockname()[:2]
        print(f"ragplane serves on http://{host}:{port}", flush=True)
        await server.serve(sockets=[listener])
    finally:
        await encoder.aclose()
    return 0


async def _warm_up(encoder: LocalEncoder) -> None:
    try:
        await asyncio.wait_for(encoder.warm_up(), _WARM_UP_S)
    except TimeoutError:
        _log.warning("warm-up was cut short", limit_s=_WARM_UP_S)


class _Server(uvicorn.Server):
    """Drains on a signal: readiness goes off first, and the listener closes last."""

    def __init__(self, config: uvicorn.Config, encoder: LocalEncoder, drain_s: float) -> None:
        super().__init__(config)
        self._encoder = encoder
        self._drain_s = drain_s
        self._stopping: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """In place of uvicorn's, which stops at once and raises the signal again at the end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        else:  # a second signal: somebody is in a hurry
            self.should_exit = self.force_exit = True

    async def _stop(self) -> None:
        await self._encoder.drain(self._drain_s)
        self.should_exit = True
