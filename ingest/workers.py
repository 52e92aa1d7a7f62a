"""Parsing in processes that can be killed: a crash or a hang costs one document.

A native parser that segfaults takes its process with it, and one that spins cannot be interrupted
from Python; so each parser runs in a process of its own, spawned clean, watched for time and
memory, recycled after many documents.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psutil

from ingest.objects.address import is_address
from ingest.objects.copies import ObjectCopy
from ingest.objects.store import ObjectStore
from ingest.options import ParserSpec
from ingest.parsed import ParseRequest, ParseResult, RawPage
from ingest.sources import path_of
from ragplane.core.errors import StageError, describe

_DOCUMENTS_PER_PROCESS = 500
_WORN_SHARE = 0.75  # of the memory limit, in use before a document is even opened
_GRACE_S = 5.0
_WATCH_EVERY_S = 0.1
T = TypeVar("T")


class Checkpoints(Protocol):
    """Where finished pages of a document are kept, and found again by the next run."""

    async def finished(self, sha256: str) -> Mapping[int, RawPage]:
        """Pages that are known of the content with this hash."""
        ...

    async def keep(self, sha256: str, pages: Sequence[RawPage]) -> None:
        """Keep pages that were just read."""
        ...


class NoCheckpoints:
    """Keeps nothing."""

    async def finished(self, sha256: str) -> Mapping[int, RawPage]:
        """See Checkpoints."""
        return {}

    async def keep(self, sha256: str, pages: Sequence[RawPage]) -> None:
        """See Checkpoints."""


class ParserProcess:
    """One parser in one process, used by one task at a time."""

    def __init__(self, spec: ParserSpec) -> None:
        self._spec = spec
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._documents = 0
        self._store: ObjectStore | None = None
        # Not the loop's own threads: there may be more parsers than those, and each waits in one.
        self._thread = ThreadPoolExecutor(1, "parser")

    @asynccontextmanager
    async def file_of(self, source: str) -> AsyncIterator[Path]:
        """The file of a source; an object is fetched, and its copy removed at the end of the block.

        A copy is bounded by the limits on memory, since a file is read whole, and on time. Raises
        StageError, and ConfigError where the object store cannot be asked.
        """
        if not is_address(source):
            yield path_of(source)
            return
        with ObjectCopy(source, self._spec.memory_bytes, self._spec.timeout_s) as copy:
            yield await self._apart(self._fetch, copy)

    async def parse(
        self, request: ParseRequest, checkpoints: Checkpoints | None = None
    ) -> ParseResult:
        """Parse one file.

        Raises StageError, also if the process dies or takes too much time or memory, and whatever
        `checkpoints` raises.
        """
        kept = checkpoints or NoCheckpoints()
        try:
            outcome = await self._parse(request, kept)
        except BaseException:
            self._kill()  # it may be in the middle of a document
            raise
        if isinstance(outcome, StageError):
            raise outcome
        return outcome

    def close(self) -> None:
        """End the process at once, whatever it is doing; a parse under way fails."""
        self._kill()
        self._thread.shutdown(wait=False)
        if self._store is not None:
            self._store.close()

    def _fetch(self, copy: ObjectCopy) -> Path:
        self._store = self._store or ObjectStore()
        return copy.fetch(self._store)

    async def _parse(
        self, request: ParseRequest, checkpoints: Checkpoints
    ) -> ParseResult | StageError:
        deadline_s = time.monotonic() + self._spec.timeout_s
        await self._apart(self._begin, request)
        sha256 = ""
        while True:
            pages: list[RawPage] = []
            outcome: ParseResult | StageError | None = None
            for message in await self._apart(self._receive, deadline_s):
                if isinstance(message, str):
                    sha256 = message
                elif isinstance(message, RawPage):
                    pages.append(message)
                else:
                    outcome = message
            asked_s = time.monotonic()
            if pages:
                await checkpoints.keep(sha256, pages)
            if outcome is not None:
                return outcome
            if not pages:  # it sent the hash, and waits for what is known
                await self._apart(self._send, await checkpoints.finished(sha256))
            deadline_s += time.monotonic() - asked_s  # a ledger that is down is not its fault

    async def _apart(self, work: Callable[[Any], T], argument: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, argument)

    def _begin(self, request: ParseRequest) -> None:
        try:
            worn = self._resident_bytes() > _WORN_SHARE * self._spec.memory_bytes
            if worn or self._documents >= _DOCUMENTS_PER_PROCESS:
                self._kill()
            if self._process is None or self._process.poll() is not None:
                self._connection = self._start()
                self._documents = 0
            self._documents += 1
        except OSError as error:
            raise StageError("parse", f"no parser process ({describe(error)})") from error
        self._send(request)

    def _start(self) -> Connection:
        """Start the process by module name.

        `multiprocessing` would import the caller's main module again, and run a script that has
        no guard.
        """
        ours, theirs = Pipe()
        with theirs:
            fd = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ingest.parser_process", str(fd), str(os.getpid())],
                pass_fds=[fd],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        ours.send(self._spec)
        return ours

    def _send(self, message: object) -> None:
        try:
            self._pipe().send(message)
        except OSError as error:
            raise StageError("parse", f"the parser process died ({self._reap()})") from error

    def _receive(self, deadline_s: float) -> list[Any]:
        """What the process has to say, at least one message."""
        connection = self._pipe()
        try:
            self._check(deadline_s)  # also of a parser that never pauses
            while not connection.poll(_WATCH_EVERY_S):
                self._check(deadline_s)
            messages = [connection.recv()]
            while connection.poll(0):
                messages.append(connection.recv())
        except (EOFError, OSError) as error:
            raise StageError("parse", f"the parser process died ({self._reap()})") from error
        return messages

    def _check(self, deadline_s: float) -> None:
        """Raise StageError if the document has used up its time or its memory."""
        if time.monotonic() > deadline_s:
            raise StageError("parse", f"took longer than {self._spec.timeout_s:g} s")
        used = self._resident_bytes()
        if used > self._spec.memory_bytes:
            limit = self._spec.memory_bytes >> 20
            raise StageError("parse", f"took more than {limit:,} MiB of memory")

    def _resident_bytes(self) -> int:
        process = self._process
        if process is None:
            return 0
        with suppress(psutil.NoSuchProcess):
            return int(psutil.Process(process.pid).memory_info().rss)
        return 0

    def _pipe(self) -> Connection:
        if self._connection is None:
            raise StageError("parse", "the parser process was closed")
        return self._connection

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
