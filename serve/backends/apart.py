"""A backend in processes of its own, one for each of its streams.

Python's lock is held by one thread at a time. In the process of the server a forward pass waits
for it before each of its operators, for as long as the event loop is busy: with many small
requests at once a pass took three times as long. What crashes apart, or is killed for its memory,
costs the batches that ran, and the next one starts the processes anew.

The first process loads the model and forks the others, so that all share its weights.
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
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import cast

import structlog

from ragplane.core.config import BackendName, Device, DtypeName, PoolingName
from ragplane.core.errors import ModelError, UnavailableError, describe
from ragplane.core.models import read_model
from serve.backends.base import Backend, BackendDownError, ModelInput
from serve.backends.factory import Candidate, build
from serve.encoder import Vectors

_MESSAGE_BYTES = 65_536
_MOST_STREAMS = 16
_DIES_WITHIN_S = 1.0
_log = structlog.get_logger()


class ProcessBackend(Backend):
    """`Backend` whose passes run elsewhere. Safe for as many threads as it has streams."""

    def __init__(
        self,
        folder: Path,
        pooling: PoolingName | None,
        candidate: Candidate,
        graph: Path | None,
        threads: int,
    ) -> None:
        """Start the first process on the model in `folder`, and wait until it is loaded.

        Raises ModelError.
        """
        way = (candidate.backend, candidate.dtype, candidate.device)
        self._arguments = (str(folder), pooling or "", *way, str(graph or ""), str(threads))
        self._starting, self._lock = threading.Lock(), threading.Lock()
        self._closed = False
        self._life = _Life(self._arguments)
        facts = self._life.load()
        self.name, self.dtype = facts.name, facts.dtype
        self.packed, self.streams = facts.packed, facts.streams

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        """As `Backend.forward`. Raises UnavailableError when a process dies meanwhile, and
        BackendDownError when none can be started."""
        with self._starting:
            life = self._living()
        return life.forward(inputs)

    def close(self) -> None:
        """End the processes, whatever they do."""
        with self._lock:
            self._closed = True
            self._life.end()

    def _living(self) -> _Life:
        with self._lock:  # not while a process loads: `close` ends that
            if self._closed:
                raise UnavailableError("the encoder is closed")
            if self._life.alive:
                return self._life
            _log.error("model process died, and starts anew", model=self._arguments[0])
            self._life.end()
            try:
                life = self._life = _Life(self._arguments)
            except ModelError as error:
                raise BackendDownError(str(error)) from error
        try:
            life.load()
        except ModelError as error:
            raise BackendDownError(str(error)) from error
        return life


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a backend says of itself."""

    name: str
    dtype: str
    packed: bool
    streams: int


class _Life:
    """The processes from one start to their end. They are a process group of their own."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._free: SimpleQueue[Connection] = SimpleQueue()
        self._broken = False
        self._control, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), *arguments]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            self._control.close()
            raise ModelError(f"the model process cannot be started: {error}") from error
        finally:
            theirs.close()

    @property
    def alive(self) -> bool:
        return not self._broken and self._process.poll() is None

    def load(self) -> _Facts:
        """Wait until the model is loaded; `end` in another thread ends the wait."""
        try:
            return self._loaded()
        except BaseException:
            self.end()
            raise

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        connection = self._free.get()
        try:
            connection.send(inputs)
            reply = connection.recv()
        except (EOFError, OSError) as error:
            self._broken = True
            raise UnavailableError(f"the model process {self._death()}") from error
        except BaseException:
            self._broken = True  # the rest of a reply may still come
            raise
        finally:
            self._free.put(connection)
        if isinstance(reply, Exception):
            raise reply
        return cast(list[Vectors], reply)

    def end(self) -> None:
        self._broken = True
        with contextlib.suppress(OSError):  # ended before
            self._control.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._control.close()

    def _loaded(self) -> _Facts:
        message, handles, _, _ = socket.recv_fds(self._control, _MESSAGE_BYTES, _MOST_STREAMS)
        connections = [Connection(handle) for handle in handles]
        if not message:
            raise ModelError(f"the model process {self._death()} while it loaded the model")
        said = json.loads(message)
        if "error" in said:
            raise ModelError(said["error"])
        facts = _Facts(**said)
        if len(connections) < facts.streams:  # what does not fit a process's limit is dropped
            raise ModelError("the model process has no connection: too many open files")
        for connection in connections:
            self._free.put(connection)
        return facts

    def _death(self) -> str:
        """In words. Only the first process leaves its status here."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(_DIES_WITHIN_S)
            return f"was ended by signal {-status}" if status < 0 else f"exited with {status}"
        return "died"


def _main(control: int, *arguments: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # the server drains first, and then hangs up
        signal.signal(number, signal.SIG_IGN)
    parent = socket.socket(fileno=control)
    _end_with(parent)
    gc.disable()  # a tenth of the time that PyTorch takes to import
    try:
        backend = _build(*arguments)
    except Exception as error:  # noqa: BLE001 - the edge of the process hands on what it was
        said = str(error) if isinstance(error, ModelError) else describe(error)
        parent.send(json.dumps({"error": said}).encode())
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
    folder: str, pooling: str, backend: str, dtype: str, device: str, graph: str, threads: str
) -> Backend:
    files = read_model(folder, pooling=cast(PoolingName, pooling) if pooling else None)
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
