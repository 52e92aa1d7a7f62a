"""Real server processes: the command line, loading, draining."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from ragplane.core.errors import ConfigError
from serve.client import HttpEncoder
from serve.server import bind
from tests.integration.serve.server_process import CLI, ROOT, started, until, until_ready
from tests.unit.serve.families import save_bert

HELD = (str(Path(__file__).with_name("held_server.py")),)


async def test_the_command_line_serves(model_home: Path) -> None:
    """Behaviour 12: SIGTERM ends an idle server with 0."""
    with started(model_home, *CLI, "--api-key", "K") as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            await until_ready(client)
            assert (await client.post("/embed", json={"inputs": "a"})).status_code == 401
        encoder = HttpEncoder(server.url, "K")
        scores = await encoder.rerank("capital of France", ["dogs bark", "Paris, its capital"])
        assert scores.ranking() == [1, 0]
        await encoder.aclose()
        assert server.end() == (0, "")


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


def test_no_model_at_all_is_wrong_use() -> None:
    command = [sys.executable, *CLI, "--embed-model", "none", "--rerank-model", "none"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no model to serve" in done.stderr


def test_a_model_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    command = [sys.executable, *CLI, "--embed-model", missing]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"ragplane: model {missing}: no such folder\n"


def test_a_model_that_cannot_be_loaded_ends_the_server(tmp_path: Path) -> None:
    broken = save_bert(tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"\0" * 64)
    with started(tmp_path / "home", *CLI, "--embed-model", str(broken)) as server:
        _, rest = server.process.communicate(timeout=60)
        assert server.process.returncode == 1
        assert rest.startswith("ragplane: model")
        assert "Traceback" not in rest


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
    """Behaviour 12."""
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


async def test_a_client_that_hangs_does_not_stop_the_drain(model_home: Path) -> None:
    """Behaviours 8 and 12: half a body holds no permit."""
    with started(model_home, *CLI) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            await until_ready(client)
        host, port = urlsplit(server.url).netloc.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        await asyncio.sleep(0.2)
        started_s = time.monotonic()
        code, rest = await asyncio.to_thread(server.end)
        assert b"HTTP/1.1 503" in await reader.read()
        writer.close()
    assert code == 0
    assert time.monotonic() - started_s < 10
    assert "Traceback" not in rest
