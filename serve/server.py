"""The server process: bind, serve while the models load and warm up, drain."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from typing import NoReturn

import structlog
import uvicorn
import uvloop

from ragplane.core.config import Settings
from ragplane.core.cpu import keep_blas_single_threaded
from ragplane.core.errors import ConfigError
from ragplane.core.process import end_running
from serve.http.app import create_app
from serve.http.services import Services
from serve.loading import check_folders
from serve.local import LocalEncoder

_LAST_RESPONSES_S = 5
_BACKLOG = 2048
_log = structlog.get_logger()


def run(settings: Settings, *, host: str, port: int) -> int:
    """Serve until SIGTERM or SIGINT, then drain for `drain_s` at most; the exit status.

    Port 0 takes a free one. A signal while the models load ends the process at once, with 0.
    Raises ConfigError if the address cannot be bound, and ModelError if a model cannot be loaded.
    """
    check_folders(settings)
    keep_blas_single_threaded()
    _allow_connections()
    with bind(host, port) as listener:
        uvloop.run(_serve(settings, listener))
    return 0


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


async def _serve(settings: Settings, listener: socket.socket) -> None:
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        log_level=settings.log_level,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=_LAST_RESPONSES_S,
        http="httptools",
    )
    server = _Server(config, app.state.services)
    loading = asyncio.create_task(_load(app.state.services))
    loading.add_done_callback(server.end_unless_loaded)
    print(f"ragplane: serving on {_url(listener)}", file=sys.stderr, flush=True)
    try:
        await server.serve(sockets=[listener])
    finally:
        await (await loading).aclose()


async def _load(services: Services) -> LocalEncoder:
    """Load and warm up; only then requests are taken."""
    encoder = await LocalEncoder.open(services.settings)
    spent_s = sum(model.calibration_s for model in encoder.models)
    limit_s = services.settings.warm_up_s
    if limit_s > 0:
        try:
            await asyncio.wait_for(encoder.warm_up(), limit_s - spent_s)
        except TimeoutError:
            _log.warning("warm-up was cut short", limit_s=limit_s)
    services.attach(encoder)
    for model in encoder.registry.models:
        _log.info(
            "model ready",
            model=model.name,
            backend=model.backend_name,
            dtype=model.dtype,
            parity=model.parity,
            micro_batch_tokens=model.micro_batch_tokens,
        )
    return encoder


def _allow_connections() -> None:
    """As many open files as the system lets this process have: each client is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _leave() -> NoReturn:
    """End now: nothing waits, and the thread that exports or downloads could take minutes."""
    end_running()  # an export removes its scratch files
    os._exit(0)


class _Server(uvicorn.Server):
    """Drains on a signal: readiness goes off first, and the listener closes last."""

    def __init__(self, config: uvicorn.Config, services: Services) -> None:
        super().__init__(config)
        self._services = services
        self._stopping: asyncio.Task[None] | None = None

    def end_unless_loaded(self, loading: asyncio.Task[LocalEncoder]) -> None:
        """End the server, without draining, when the models could not be loaded."""
        if loading.cancelled() or loading.exception() is not None:
            self.should_exit = True

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
        if self._services.loading:
            _leave()
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        else:  # a second signal: somebody is in a hurry
            self.should_exit = self.force_exit = True

    async def _stop(self) -> None:
        await self._services.encoder.drain(self._services.settings.drain_s)
        self.should_exit = True
