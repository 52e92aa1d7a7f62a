"""Server processes for tests."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[3]
CLI = ("-m", "ragplane.cli", "serve", "--port", "0")


@dataclass(frozen=True, slots=True)
class Server:
    """A process that listens at `url`."""

    process: subprocess.Popen[str]
    url: str

    def end(self) -> tuple[int, str]:
        """SIGTERM: the exit code, and what came on stderr after the first line."""
        self.process.send_signal(signal.SIGTERM)
        _, rest = self.process.communicate(timeout=20)
        return self.process.returncode, rest


@contextlib.contextmanager
def started(home: Path, *command: str, **environment: str) -> Iterator[Server]:
    """A server in a process of its own, as soon as it listens."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ
        | {"RAGPLANE_HOME": str(home), "PYTHONPATH": str(ROOT), "RAGPLANE_DRAIN_S": "60"}
        | environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("ragplane: serving on http://127.0.0.1:"), line
        try:
            yield Server(process, line.split()[-1])
        finally:
            process.kill()


async def until(
    path: str, client: httpx.AsyncClient, fits: Callable[[httpx.Response], bool]
) -> None:
    """Ask until the answer fits, two minutes at most."""
    for _ in range(2400):
        if fits(await client.get(path)):
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"{path} never answered that")


async def until_ready(client: httpx.AsyncClient, status: int = 200) -> None:
    """Wait for /ready to answer `status`."""
    await until("/ready", client, lambda reply: reply.status_code == status)


@contextlib.contextmanager
def ready(home: Path, *flags: str) -> Iterator[Server]:
    """A server of `ragplane serve` that takes requests."""

    async def wait(url: str) -> None:
        async with httpx.AsyncClient(base_url=url) as client:
            await until_ready(client)

    with started(home, *CLI, *flags) as server:
        asyncio.run(wait(server.url))
        yield server
