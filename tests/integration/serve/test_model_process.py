"""The processes of a server's model: killed, stopped, and left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.integration.serve.server_process import (
    CLI,
    Server,
    ready,
    started,
    until,
    until_ready,
)

HASTY = (str(Path(__file__).with_name("hasty_server.py")),)


def model_processes(server: Server) -> list[psutil.Process]:
    found = psutil.Process(server.process.pid).children(recursive=True)
    return [one for one in found if "serve.backends.model_process" in one.cmdline()]


def test_a_killed_model_process_is_started_anew(model_home: Path) -> None:
    """Behaviour 10."""
    with ready(model_home) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        before = model_processes(server)
        os.kill(before[0].pid, signal.SIGKILL)
        answers = [client.post("/embed", json={"inputs": ["one", "two"]}) for _ in range(3)]
        # The batch that finds the process gone is halved, and its halves find the new one.
        assert answers[-1].status_code == 200
        assert {answer.status_code for answer in answers} <= {200, 503}
        assert client.get("/health").status_code == 200
        assert model_processes(server) != before
        code, said = server.end()
    assert code == 0
    assert "model process died" in said
    assert "Traceback" not in said


async def test_a_model_process_that_hangs_is_started_anew(model_home: Path) -> None:
    """Behaviour 10."""
    with started(model_home, *HASTY) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            await until_ready(client)
            before = model_processes(server)
            for process in before:
                process.suspend()
            hanging = asyncio.create_task(client.post("/embed", json={"inputs": ["one", "two"]}))
            await until("/health", client, lambda reply: reply.status_code == 503)
            await until("/health", client, lambda reply: reply.status_code == 200)
            answer = await hanging
            assert (answer.status_code, "stuck" in answer.text) == (503, True)
            assert (await client.post("/embed", json={"inputs": "three"})).status_code == 200
            assert not set(before) & set(model_processes(server))
        code, said = server.end()
    assert (code, said) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_ends_while_it_loads_leaves_no_process(
    number: signal.Signals, model_home: Path
) -> None:
    """The model's process ends at once, and has nothing to say to that."""
    with started(model_home, *CLI) as server:
        while not (left := model_processes(server)):
            time.sleep(0.01)
        server.process.send_signal(number)
        _, said = server.process.communicate(timeout=20)
        _, alive = psutil.wait_procs(left, timeout=5)
    assert (alive, said) == ([], "")


def test_a_killed_server_leaves_no_process(model_home: Path) -> None:
    with ready(model_home) as server:
        left = model_processes(server)
        assert left
        server.process.kill()
        _, alive = psutil.wait_procs(left, timeout=10)
    assert not alive
