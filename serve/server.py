"""The server process: bind, serve while the models load and warm up, drain."""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket

from ragplane.core.config import Settings
from ragplane.core.cpu import keep_blas_single_threaded
from ragplane.core.errors import ConfigError
from ragplane.core.process import leave
from serve.loading import Opening, check_folders

_BACKLOG = 2048
# Imports on this thread would hold up the other one, until a process loads the model, by 0.4 s.
_HEAD_START_S = 0.25


def run(settings: Settings, *, host: str, port: int) -> int:
    """Serve until SIGTERM or SIGINT, then drain for `drain_s` at most; the exit status.

    Port 0 takes a free one. A signal while the models load ends the process at once, with 0.
    Raises ConfigError if the address cannot be bound, and ModelError if a model cannot be loaded.
    """
    check_folders(settings)
    keep_blas_single_threaded()
    _allow_connections()
    with bind(host, port) as listener:
        for number in (signal.SIGTERM, signal.SIGINT):  # until the event loop has them
            signal.signal(number, lambda *_: leave())
        opening = Opening(settings, apart=True)
        opening.wait(_HEAD_START_S)

        from serve.http.serving import serve  # imports for half a second, while models load

        serve(settings, listener, opening)
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


def _allow_connections() -> None:
    """As many open files as the system lets this process have: each client is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
