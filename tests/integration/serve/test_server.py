"""Real server processes: the command line, the official OpenAI client, loading, draining."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest

from ragplane.core.errors import ConfigError
from serve.client import HttpEncoder
from serve.server import bind

ROOT = Path(__file__).parents[3]
CLI = ("-m", "ragplane.cli", "serve", "--port", "0")
HELD = (str(Path(__file__).with_name("held_server.py")),)


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
    """Ask until the answer fits, a minute at most."""
    for _ in range(1200):
        if fits(await client.get(path)):
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"{path} never answered that")


async def until_ready(client: httpx.AsyncClient, status: int = 200) -> None:
    await until("/ready", client, lambda reply: reply.status_code == status)


async def test_the_command_line_serves_openai_s_client(model_home: Path) -> None:
    with started(model_home, *CLI, "--api-key", "K") as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            await until_ready(client)
            assert (await client.post("/embed", json={"inputs": "a"})).status_code == 401
        await asyncio.to_thread(_use_openai, f"{server.url}/v1")
        encoder = HttpEncoder(server.url, "K")
        scores = await encoder.rerank("capital of France", ["dogs bark", "Paris, its capital"])
        assert scores.ranking() == [1, 0]
        await encoder.aclose()
        assert server.end() == (0, "")


def _use_openai(url: str) -> None:
    with openai.OpenAI(base_url=url, api_key="K") as client:
        texts, name = ["a boat on the river", "tax law"], "all-MiniLM-L6-v2"
        coded = client.embeddings.create(model=name, input=texts)  # base64 by default
        floats = client.embeddings.create(model=name, input=texts, encoding_format="float")
        for one, other in zip(coded.data, floats.data, strict=True):
            np.testing.assert_allclose(one.embedding, other.embedding, atol=1e-6)
        assert coded.usage.total_tokens == floats.usage.total_tokens > 0
        assert {model.id for model in client.models.list()} == {name}
        with pytest.raises(openai.BadRequestError):
            client.embeddings.create(model=name, input="")
    wrong = openai.OpenAI(base_url=url, api_key="wrong")
    with wrong, pytest.raises(openai.AuthenticationError):
        wrong.models.list()


def test_a_taken_port_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is in use"):
            bind("127.0.0.1", port)
        command = [sys.executable, *CLI[:-1], str(port)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"ragplane: port {port} on 127.0.0.1 is in use")
    with pytest.raises(ConfigError, match=r"no\.such\.host\.invalid"):
        bind("no.such.host.invalid", 8080)


def test_a_model_that_cannot_be_loaded_ends_the_server(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with started(tmp_path, *CLI, "--embed-model", missing) as server:
        _, rest = server.process.communicate(timeout=20)
        assert server.process.returncode == 1
        assert rest == f"ragplane: model {missing}: no such folder\n"


async def test_probes_answer_while_loading_and_sigterm_ends_it(
    model_home: Path, tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    with started(model_home, *HELD, HOLD=str(hold)) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            assert (await client.get("/health")).status_code == 200
            assert (await client.get("/ready")).status_code == 503
            reply = await client.post("/embed", json={"inputs": "early"})
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        started_s = time.monotonic()
        assert server.end() == (0, "")
        assert time.monotonic() - started_s < 5


async def test_sigterm_drains(model_home: Path, tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    with started(model_home, *HELD, HOLD=str(hold)) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            await until_ready(client)
            hold.touch()
            body = {"inputs": [f"text {n} " * 30 for n in range(200)]}
            slow = asyncio.create_task(client.post("/embed", json=body))
            await until("/metrics", client, lambda reply: "te_queue_size 0.0" not in reply.text)
            server.process.send_signal(signal.SIGTERM)
            await until_ready(client, 503)
            assert (await client.get("/health")).status_code == 200
            assert (await client.post("/embed", json={"inputs": "late"})).status_code == 503
            assert not slow.done()
            hold.unlink()
            assert len((await slow).json()) == 200
        assert await asyncio.to_thread(server.process.wait, 20) == 0
