"""A real server process: the official OpenAI client, a taken port, draining."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest

from ragplane.core.errors import ConfigError
from serve.client import HttpEncoder
from serve.server import bind

ROOT = Path(__file__).parents[3]
SERVE = "from serve.server import run; from ragplane.core.config import load_settings; import sys; "
SERVE += "sys.exit(run(load_settings(), host='127.0.0.1', port=0))"


@pytest.fixture(scope="module")
def server(model_home: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its URL."""
    environment = os.environ | {"RAGPLANE_HOME": str(model_home), "RAGPLANE_DRAIN_S": "60"}
    with subprocess.Popen(
        [sys.executable, "-c", SERVE],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield process, line.split()[-1]
        process.kill()


def test_openai_client(server: tuple[subprocess.Popen[str], str]) -> None:
    with openai.OpenAI(base_url=f"{server[1]}/v1", api_key="none") as client:
        texts = ["a boat on the river", "tax law"]
        coded = client.embeddings.create(model="all-MiniLM-L6-v2", input=texts)
        floats = client.embeddings.create(
            model="all-MiniLM-L6-v2", input=texts, encoding_format="float"
        )
        for one, other in zip(coded.data, floats.data, strict=True):
            np.testing.assert_allclose(one.embedding, other.embedding, atol=1e-6)
        assert coded.usage.total_tokens == floats.usage.total_tokens > 0
        assert [model.id for model in client.models.list()]
        with pytest.raises(openai.BadRequestError):
            client.embeddings.create(model="all-MiniLM-L6-v2", input="")


async def test_http_encoder(server: tuple[subprocess.Popen[str], str]) -> None:
    encoder = HttpEncoder(server[1])
    scores = await encoder.rerank("capital of France", ["dogs bark", "Paris, capital of France"])
    assert scores.ranking() == [1, 0]
    await encoder.aclose()


def test_a_taken_port_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is in use"):
            bind("127.0.0.1", port)
    with pytest.raises(ConfigError, match=r"no\.such\.host\.invalid"):
        bind("no.such.host.invalid", 8080)


async def test_sigterm_drains(server: tuple[subprocess.Popen[str], str]) -> None:
    process, url = server
    body = {"inputs": [f"text {n} " * 30 for n in range(200)]}
    with ThreadPoolExecutor() as threads:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            slow = asyncio.create_task(client.post("/embed", json=body))
            for _ in range(1000):
                if "te_queue_size 0.0" not in (await client.get("/metrics")).text:
                    break
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.2)
            assert (await client.get("/ready")).status_code == 503
            assert (await client.get("/health")).status_code == 200
            assert (await client.post("/embed", json={"inputs": "late"})).status_code == 503
            assert len((await slow).json()) == 200
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(threads, process.wait, 20) == 0
