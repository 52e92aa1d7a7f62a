"""Serving over HTTP on a bound socket: load, warm up, answer, drain."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Iterator

import structlog
import uvicorn
import uvloop

from ragplane.core.config import Settings
from ragplane.core.process import leave
from serve.http.app import create_app
from serve.http.services import Services
from serve.loading import Opening
from serve.local import LocalEncoder

_LAST_RESPONSES_S = 5
_log = structlog.get_logger()


def serve(settings: Settings, listener: socket.socket, opening: Opening) -> None:
    """Answer on `listener` until a signal; with the models, once they are open.

    Raises what opening them raises.
    """
    uvloop.run(_serve(settings, listener, opening))


async def _serve(settings: Settings, listener: socket.socket, opening: Opening) -> None:
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
    loading = asyncio.create_task(_load(app.state.services, opening))
    loading.add_done_callback(server.end_unless_loaded)
    print(f"ragplane: serving on {_url(listener)}", file=sys.stderr, flush=True)
    try:
        await server.serve(sockets=[listener])
    finally:
        await (await loading).aclose()


async def _load(services: Services, opening: Opening) -> LocalEncoder:
    """Load and warm up; only then requests are taken."""
    encoder = await LocalEncoder.open(services.settings, opening)
    spent_s = sum(model.calibration_s for model in encoder.models)
    limit_s = services.settings.warm_up_s
    if limit_s > 0:
        try:
            await asyncio.wait_for(encoder.warm_up(), limit_s - spent_s)
        except TimeoutError:
            _log.warning("warm-up was cut short", limit_s=limit_s)
    # What is there now stays: a search for cycles among it would hold up requests by 0.1 s.
    gc.freeze()
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


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


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
            leave()
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        else:  # a second signal: somebody is in a hurry
            self.should_exit = self.force_exit = True

    async def _stop(self) -> None:
        await self._services.encoder.drain(self._services.settings.drain_s)
        self.should_exit = True
