"""The processes of `serve.backends.apart`, as they look from inside.

The first one loads the model and forks the others, so that all share its weights. A server waits
for it at its start, so it imports little besides the backend: no settings, no logging.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ragplane.core.errors import ModelError
from ragplane.core.models import read_model
from serve.backends.base import Backend, ModelInput
from serve.backends.factory import Candidate, build
from serve.encoder import Vectors

if TYPE_CHECKING:
    from ragplane.core.config import BackendName, Device, DtypeName, PoolingName


@dataclass(frozen=True, slots=True)
class Facts:
    """What a backend says of itself."""

    name: str
    dtype: str
    packed: bool
    streams: int


def _main(control: int, *arguments: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # the server drains first, and then hangs up
        signal.signal(number, signal.SIG_IGN)
    parent = socket.socket(fileno=control)
    _end_with(parent)
    gc.disable()  # a tenth of the time that PyTorch takes to import
    try:
        backend = _build(*arguments)
    except ModelError as error:
        parent.send(json.dumps({"error": str(error)}).encode())
        return
    facts = Facts(backend.name, backend.dtype, backend.packed, backend.streams)
    pairs = [socket.socketpair() for _ in range(backend.streams)]
    gc.freeze()  # or the first search for cycles would copy what the processes share
    gc.enable()
    mine = _fork_others(backend.streams)
    if mine == 0:
        theirs = [pair[0].fileno() for pair in pairs]
        socket.send_fds(parent, [json.dumps(asdict(facts)).encode()], theirs)
    connection = Connection(pairs[mine][1].detach())
    for pair in pairs:
        for end in pair:
            end.close()
    _answer(connection, backend)


def _end_with(parent: socket.socket) -> None:
    """Have the system end this process group, whatever it does, once the parent hangs up.

    A thread that waits for that would not survive the fork, nor run beside a pass that is stuck.
    """
    fcntl.fcntl(parent, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(parent, fcntl.F_SETFL, fcntl.fcntl(parent, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([parent], [], [], 0)[0]:  # it has done so already
        os._exit(0)


def _fork_others(streams: int) -> int:
    """Which of the streams this process is to serve; each comes back in a process of its own."""
    for stream in range(1, streams):
        if os.fork() == 0:
            return stream
    return 0


def _build(
    folder: str,
    pooling: str,
    backend: str,
    dtype: str,
    device: str,
    graph: str,
    threads: str,
    cache: str,
) -> Backend:
    files = read_model(folder, pooling=cast("PoolingName", pooling) if pooling else None)
    way = cast("tuple[BackendName, DtypeName, Device]", (backend, dtype, device))
    file = Path(graph) if graph else None
    return build(files, Candidate(*way), file, int(threads), Path(cache))


def _answer(connection: Connection, backend: Backend) -> None:
    """Until the parent hangs up."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(_forward(backend, connection.recv()))


def _forward(backend: Backend, inputs: Sequence[ModelInput]) -> list[Vectors] | Exception:
    """The results, or why the pass failed. Any other error is a fault of ours, and ends the
    process with its traceback; the next batch starts it anew."""
    try:
        return backend.forward(inputs)
    except (ModelError, MemoryError) as error:
        return error


if __name__ == "__main__":
    _main(int(sys.argv[1]), *sys.argv[2:])
