"""A real embedded PostgreSQL for the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from retrieval.stores.base import CorpusKey
from retrieval.stores.embedded import EmbeddedServer


@pytest.fixture(scope="session")
def postgres_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A RAGPLANE_HOME whose embedded PostgreSQL runs for the whole session."""
    home = tmp_path_factory.mktemp("home")
    server = EmbeddedServer(home / "postgres")
    server.start()
    yield home
    server.stop()


@pytest.fixture(scope="session")
def conninfo(postgres_home: Path) -> Iterator[str]:
    """How to connect to it besides the store."""
    server = EmbeddedServer(postgres_home / "postgres")
    yield server.start()
    server.stop()


@pytest.fixture
def database(conninfo: str) -> str:
    """A database of its own on the session's server."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return make_conninfo(conninfo, dbname=name)


@pytest.fixture
def key() -> CorpusKey:
    """A scope that no other test uses."""
    return CorpusKey(tenant=uuid4().hex, corpus="manuals")
