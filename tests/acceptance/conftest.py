"""One home, its database and an encoder for the tests of runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrieval.stores.connections import Connections
from retrieval.stores.embedded import EmbeddedServer
from tests.acceptance.encoder_server import EncoderServer
from tests.acceptance.ingest_runs import Runs
from tests.conftest import make_home


@pytest.fixture(scope="module")
def shared_runs(tmp_path_factory: pytest.TempPathFactory, model_home: Path) -> Iterator[Runs]:
    """One home and one server for the module."""
    home = make_home(tmp_path_factory.mktemp("faults") / "home", model_home)
    server = EmbeddedServer(home / "postgres")
    conninfo = server.start()
    asyncio.run(prepare(conninfo))
    with EncoderServer() as encoder:
        yield Runs(home, conninfo, encoder)
    server.stop()


async def prepare(conninfo: str) -> None:
    """Make the tables."""
    connections = Connections(conninfo)
    await connections.open()
    await connections.aclose()


@pytest.fixture
def runs(shared_runs: Runs) -> Iterator[Runs]:
    """Runs over a database that is empty."""
    shared_runs.encoder.calls, shared_runs.encoder.pause_s = 0, 0.0
    yield shared_runs
    shared_runs.forget()
