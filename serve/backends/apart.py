"""A backend in processes of its own, one for each of its streams.

Python's lock is held by one thread at a time. In the process of the server a forward pass waits
for it before each of its operators, for as long as the event loop is busy: with many small
requests at once a pass took three times as long. What crashes apart, or is killed for its memory,
costs the batches that ran, and the next one starts the processes anew; what hangs apart can be
killed.

From inside they are `serve.backends.model_process`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import cast

import structlog

from ragplane.core.config import PoolingName
from ragplane.core.errors import ModelError, UnavailableError
from serve.backends import model_process
from serve.backends.base import Backend, BackendDownError, ModelInput
from serve.backends.factory import Candidate
from serve.backends.model_process import Facts
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
        cache: Path,
    ) -> None:
        """Start the first process on the model in `folder`, and wait until it is loaded. What it
        compiles for this host is kept in `cache`.

        Raises ModelError.
        """
        way = (candidate.backend, candidate.dtype, candidate.device)
        said = (str(graph or ""), str(threads), str(cache))
        self._arguments = (str(folder), pooling or "", *way, *said)
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

    def interrupt(self, after_s: float) -> None:
        """As `Backend.interrupt`. What runs beside such a pass fails with it, and the next one
        starts the processes anew."""
        self._life.interrupt(after_s)

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


class _Life:
    """The processes from one start to their end. They are a process group of their own."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._free: SimpleQueue[Connection] = SimpleQueue()
        self._since_s: dict[Connection, float] = {}
        self._broken = False
        self._control, theirs = socket.socketpair()
        module = [sys.executable, "-P", "-m", model_process.__name__]
        try:
            self._process = subprocess.Popen(
                [*module, str(theirs.fileno()), *arguments],
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

    def load(self) -> Facts:
        """Wait until the model is loaded; `end` in another thread ends the wait."""
        try:
            return self._loaded()
        except BaseException:
            self.end()
            raise

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        connection = self._free.get()
        self._since_s[connection] = time.monotonic()
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
            del self._since_s[connection]
            self._free.put(connection)
        if isinstance(reply, Exception):
            raise reply
        return cast(list[Vectors], reply)

    def interrupt(self, after_s: float) -> None:
        """Kill the processes if a pass of theirs takes longer; while they load, none does.

        It waits for nothing, so that who watches can go on watching.
        """
        oldest_s = min(tuple(self._since_s.values()), default=math.inf)
        if time.monotonic() - oldest_s > after_s:
            self._kill()

    def end(self) -> None:
        with contextlib.suppress(OSError):  # ended before
            self._control.shutdown(socket.SHUT_RDWR)
        self._kill()
        self._process.wait()
        self._control.close()

    def _kill(self) -> None:
        self._broken = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _loaded(self) -> Facts:
        message, handles, _, _ = socket.recv_fds(self._control, _MESSAGE_BYTES, _MOST_STREAMS)
        connections = [Connection(handle) for handle in handles]
        if not message:
            raise ModelError(f"the model process {self._death()} while it loaded the model")
        said = json.loads(message)
        if "error" in said:
            raise ModelError(said["error"])
        facts = Facts(**said)
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
