"""A backend in processes of its own, one for each of its streams.

Python's lock is held by one thread at a time. In the process of the server a forward pass waits
for it before each of its operators, for as long as the event loop is busy: with many small
requests at once a pass took three times as long. What crashes apart, or is killed for its memory,
costs the batches that ran, and the next one starts the processes anew.

The first process loads the model and forks the others, so that all share its weights.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn, cast

import structlog

from ragplane.core.config import BackendName, Device, DtypeName, PoolingName
from ragplane.core.errors import ModelError, UnavailableError, describe
from ragplane.core.models import read_model
from serve.backends.base import Backend, ModelInput
from serve.backends.factory import Candidate, build
from serve.encoder import Vectors

_MESSAGE_BYTES = 65_536
_DIES_WITHIN_S = 1.0
_log = structlog.get_logger()


class ProcessBackend(Backend):
    """`Backend` whose passes run elsewhere. Safe for as many threads as it has streams."""

    def __init__(
        self,
        spec: str,
        pooling: PoolingName | None,
        candidate: Candidate,
        graph: Path | None,
        threads: int,
    ) -> None:
        """Start the first process and wait until the model is loaded. Raises ModelError."""
        way = (candidate.backend, candidate.dtype, candidate.device)
        self._arguments = (spec, pooling or "", *way, str(graph or ""), str(threads))
        self._lock = threading.Lock()
        self._closed = False
        self._life = _Life(self._arguments)
        facts = self._life.facts
        self.name, self.dtype = facts.name, facts.dtype
        self.packed, self.streams = facts.packed, facts.streams

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        """As `Backend.forward`. Raises UnavailableError when a process dies meanwhile."""
        return self._running().forward(inputs)

    def close(self) -> None:
        """End the processes, whatever they do."""
        with self._lock:
            self._closed = True
            self._life.end()

    def _running(self) -> _Life:
        with self._lock:
            if self._closed:
                raise UnavailableError("the encoder is closed")
            if not self._life.alive:
                _log.error("model process died, and starts anew", backend=self.name)
                self._life.end()
                self._life = _Life(self._arguments)
            return self._life


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a backend says of itself."""

    name: str
    dtype: str
    packed: bool
    streams: int


class _Life:
    """The processes from one start to their end."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), *arguments]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._free: SimpleQueue[Connection] = SimpleQueue()
        self._broken = False
        try:
            self.facts = self._ready()
        except BaseException:
            self.end()
            raise

    @property
    def alive(self) -> bool:
        return not self._broken and self._process.poll() is None

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        connection = self._free.get()
        try:
            connection.send(inputs)
            reply = connection.recv()
        except (EOFError, OSError) as error:
            self._broken = True
            raise UnavailableError(f"the model process {self._death()}") from error
        finally:
            self._free.put(connection)
        if isinstance(reply, Exception):
            raise reply
        return cast(list[Vectors], reply)

    def end(self) -> None:
        """The other processes end with their connection to this one."""
        self._broken = True
        self._control.close()
        self._process.kill()
        self._process.wait()

    def _ready(self) -> _Facts:
        message, handles, _, _ = socket.recv_fds(self._control, _MESSAGE_BYTES, os.cpu_count() or 1)
        if not message:
            raise ModelError(f"the model process {self._death()} while it loaded the model")
        said = json.loads(message)
        if "error" in said:
            raise ModelError(said["error"])
        for handle in handles:
            self._free.put(Connection(handle))
        return _Facts(**said)

    def _death(self) -> str:
        """In words. Another than the first process leaves no status here."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(_DIES_WITHIN_S)
            return f"was ended by signal {-status}" if status < 0 else f"exited with {status}"
        return "died"


def _main(control: int, *arguments: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # the server drains first, and then hangs up
        signal.signal(number, signal.SIG_IGN)
    parent = socket.socket(fileno=control)
    gc.disable()  # a tenth of the time that PyTorch takes to import
    try:
        backend = _build(*arguments)
    except ModelError as error:
        parent.send(json.dumps({"error": str(error)}).encode())
        return
    facts = _Facts(backend.name, backend.dtype, backend.packed, backend.streams)
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
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    _answer(connection, backend)


def _fork_others(streams: int) -> int:
    """Which of the streams this process is to serve; each comes back in a process of its own."""
    for stream in range(1, streams):
        if os.fork() == 0:
            return stream
    return 0


def _leave_with(parent: socket.socket) -> NoReturn:
    """The parent says nothing more: what comes is the end of its connection."""
    with contextlib.suppress(OSError):
        parent.recv(1)
    os._exit(0)  # also out of a pass that is stuck


def _build(
    spec: str, pooling: str, backend: str, dtype: str, device: str, graph: str, threads: str
) -> Backend:
    files = read_model(spec, pooling=cast(PoolingName, pooling) if pooling else None)
    candidate = Candidate(cast(BackendName, backend), cast(DtypeName, dtype), cast(Device, device))
    return build(files, candidate, Path(graph) if graph else None, int(threads))


def _answer(connection: Connection, backend: Backend) -> None:
    """Until the parent hangs up."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(_forward(backend, connection.recv()))


def _forward(backend: Backend, inputs: Sequence[ModelInput]) -> list[Vectors] | Exception:
    try:
        return backend.forward(inputs)
    except (ModelError, MemoryError) as error:
        return error
    except Exception as error:  # noqa: BLE001 - the edge of the process hands on what it was
        return ModelError(f"forward pass of {len(inputs)} inputs: {describe(error)}")


if __name__ == "__main__":
    _main(int(sys.argv[1]), *sys.argv[2:])
