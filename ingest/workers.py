"""Parsing in processes that can be killed: a crash or a hang costs one document.

A native parser that segfaults takes its process with it, and one that spins cannot be interrupted
from Python; so each parser runs in a process of its own, spawned clean, recycled after many
documents.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.parsed import ParseRequest, ParseResult
from ragplane.core.errors import StageError, describe

if TYPE_CHECKING:
    from ingest.parse import Parser

_DOCUMENTS_PER_PROCESS = 500
_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class ParserSpec:
    """What a parser process needs to know; `timeout_s` bounds one document."""

    tokenizer_file: Path
    limit_tokens: int
    ocr_threads: int
    timeout_s: float


class ParserProcess:
    """One parser in one process, used by one task at a time."""

    def __init__(self, spec: ParserSpec) -> None:
        self._spec = spec
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._documents = 0

    async def parse(self, request: ParseRequest) -> ParseResult:
        """Parse one file. Raises StageError, also if the process dies or takes too long."""
        return await asyncio.to_thread(self._parse, request)

    def close(self) -> None:
        """End the process at once, whatever it is doing; a parse under way fails."""
        self._kill()

    def _parse(self, request: ParseRequest) -> ParseResult:
        try:
            connection = self._running()
        except OSError as error:
            raise StageError("parse", f"no parser process ({describe(error)})") from error
        try:
            connection.send(request)
            if not connection.poll(self._spec.timeout_s):
                self._kill()
                raise StageError("parse", f"took longer than {self._spec.timeout_s:g} s")
            outcome = connection.recv()
        except (EOFError, OSError) as error:
            raise StageError("parse", f"the parser process died ({self._reap()})") from error
        if isinstance(outcome, StageError):
            raise outcome
        result: ParseResult = outcome
        return result

    def _running(self) -> Connection:
        if self._documents >= _DOCUMENTS_PER_PROCESS:
            self._kill()
        if self._process is None or self._connection is None or self._process.poll() is not None:
            self._connection = self._start()
            self._documents = 0
        self._documents += 1
        return self._connection

    def _start(self) -> Connection:
        """Start the process by module name.

        `multiprocessing` would import the caller's main module again, and run a script that has
        no guard.
        """
        ours, theirs = Pipe()
        with theirs:
            fd = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ingest.workers", str(fd)],
                pass_fds=[fd],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        ours.send(self._spec)
        return ours

    def _reap(self) -> str:
        """Why the process ended, in words."""
        process = self._process
        if process is None:
            return "closed"
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
        code = process.returncode
        self._kill()
        if code is not None and code < 0:
            return signal.Signals(-code).name
        return f"exit status {code}"

    def _kill(self) -> None:
        process, self._process = self._process, None  # first: `close` may run beside `_reap`
        if process is not None:
            process.kill()
            process.wait()


def _serve(connection: Connection) -> None:
    """The parser process: the spec, then requests in, results or errors out, until the pipe
    closes.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    # Imported here: the parent never parses, and the readers take seconds to import.
    from ingest.parse import Parser

    spec: ParserSpec = connection.recv()
    parser = cache(lambda: Parser(spec.tokenizer_file, spec.limit_tokens, spec.ocr_threads))
    while True:
        try:
            request: ParseRequest = connection.recv()
        except EOFError:
            return
        try:
            connection.send(_outcome(parser, request))
        except BrokenPipeError:  # the parent is gone
            return


def _outcome(parser: Callable[[], Parser], request: ParseRequest) -> ParseResult | StageError:
    try:
        return parser().parse(request)
    except StageError as error:
        return error
    except Exception as error:  # noqa: BLE001 - a reader's surprise costs its document only
        return StageError("parse", describe(error))


if __name__ == "__main__":
    from ingest.workers import _serve as serve  # the module that the parent's pickles name

    serve(Connection(int(sys.argv[1])))
