"""The processes under measurement. Only the one that is measured runs; the others are stopped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil

from tests.bench.http_client import Address
from tests.bench.texts import model_folder

ROOT = Path(__file__).parents[2]
PEERS = Path(os.environ.get("BENCH_PEERS", ROOT / ".venv-peers"))
SCRIPTS = Path(__file__).parent / "peers"
MODEL = "all-MiniLM-L6-v2"  # the name under which both servers serve the bundled model
_START_S = 120
_OFFLINE = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
_SERVING = "ragplane: serving on http://"
C = TypeVar("C", bound="Child")


def exit_on_sigterm() -> None:
    """Let SIGTERM end this process as an exit does, so that its children are ended, too."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


class Child:
    """A process that can be stopped and continued with all that it started."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], **pipes: Any
    ) -> None:
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, start_new_session=True, **pipes
        )

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Let it run for as long as this lasts."""
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._signal(signal.SIGSTOP)

    def end(self) -> None:
        """SIGTERM, then SIGKILL after a while."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            for one in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.send_signal(number)
            self.process.send_signal(number)


class Server(Child):
    """A server over HTTP. It has answered its first probe, after `start_s`, and is stopped then."""

    def __init__(self, command: Sequence[str], port: int, probe: str, **environment: str) -> None:
        started = time.perf_counter()
        with tempfile.NamedTemporaryFile(delete=False, suffix=".log") as log:
            super().__init__(command, environment, stdout=log, stderr=log)
        self._log = Path(log.name)
        try:
            self.address = Address("127.0.0.1", port or self._told_port())
            self._wait_for(probe)
        except BaseException:
            self.end()
            raise
        self.start_s = time.perf_counter() - started
        self._signal(signal.SIGSTOP)

    def end(self) -> None:
        super().end()
        self._log.unlink(missing_ok=True)

    def get(self, path: str) -> bytes:
        """The body of a GET. OSError without an answer or with a bad status."""
        host, port = self.address
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=10) as response:
            body: bytes = response.read()
        return body

    def _told_port(self) -> int:
        for _ in self._patience():
            for line in self._log.read_text().splitlines():
                if line.startswith(_SERVING):
                    return int(line.rpartition(":")[2])
        raise SystemExit("unreachable")

    def _wait_for(self, probe: str) -> None:
        for _ in self._patience():
            with contextlib.suppress(OSError, urllib.error.URLError):
                self.get(probe)
                return

    def _patience(self) -> Iterator[None]:
        """Steps of 20 ms while the process lives and there is time. SystemExit with its log."""
        until = time.monotonic() + _START_S
        while self.process.poll() is None and time.monotonic() < until:
            yield
            time.sleep(0.02)
        raise SystemExit(f"the server did not start:\n{self._log.read_text()[-2000:]}")


class Worker(Child):
    """A script that answers lines of JSON (tests/bench/peers/lines.py). Stopped between calls."""

    def __init__(self, python: Path | str, *command: str, **environment: str) -> None:
        answers, theirs = os.pipe()
        super().__init__(
            [str(python), *command],
            {**_OFFLINE, "BENCH_ANSWERS": str(theirs), **environment},
            stdin=subprocess.PIPE,
            stdout=sys.stderr,  # what libraries print is no part of the tables
            pass_fds=(theirs,),
            text=True,
        )
        os.close(theirs)
        self._answers = os.fdopen(answers)
        self._line()
        self._signal(signal.SIGSTOP)

    def call(self, task: str, **arguments: Any) -> dict[str, Any]:
        """What the function named `task` returned. SystemExit if the script ended."""
        assert self.process.stdin is not None
        with self.running():
            self.process.stdin.write(json.dumps({"task": task, **arguments}) + "\n")
            self.process.stdin.flush()
            return self._line()

    def end(self) -> None:
        super().end()
        self._answers.close()

    def _line(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise SystemExit(f"{self.process.args} ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.contextmanager
def ragplane(**environment: str) -> Iterator[Server]:
    """Our server, with settings from the environment and `environment`."""
    command = [sys.executable, "-m", "ragplane.cli", "serve", "--port", "0"]
    yield from _ended(Server(command, 0, "/ready", PYTHONPATH=str(ROOT), **environment))


@contextlib.contextmanager
def infinity() -> Iterator[Server]:
    """Infinity with its torch engine in fp32, from its own virtual environment."""
    port = _free_port()
    options = f"--engine torch --device cpu --dtype float32 --log-level error --port {port}"
    command = [str(peer_python("infinity").with_name("infinity_emb")), "v2", *options.split()]
    command += ["--model-id", str(model_folder()), "--served-model-name", MODEL]
    yield from _ended(Server([*command, "--host", "127.0.0.1"], port, "/health", **_OFFLINE))


@contextlib.contextmanager
def script(name: str) -> Iterator[Worker]:
    """A script of tests/bench/peers in the environment of sentence-transformers."""
    python = peer_python("sentence-transformers")
    yield from _ended(Worker(python, str(SCRIPTS / f"{name}.py"), str(model_folder())))


@contextlib.contextmanager
def module(name: str, **environment: str) -> Iterator[Worker]:
    """A module of this repository in a process of its own."""
    yield from _ended(Worker(sys.executable, "-m", name, PYTHONPATH=str(ROOT), **environment))


def peer_python(name: str) -> Path:
    """The Python of a peer's virtual environment. SystemExit if it has not been made."""
    python = PEERS / name / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{python} is missing: run `make bench-setup`")
    return python


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def _ended(child: C) -> Iterator[C]:
    try:
        yield child
    finally:
        child.end()
