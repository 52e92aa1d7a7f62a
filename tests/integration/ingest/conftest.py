"""Every ledger in turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from ingest.ledger.base import Ledger, Outbox, VectorCache
from ingest.ledger.memory import MemoryLedger
from ingest.ledger.memory_outbox import MemoryOutbox, MemoryVectorCache
from ingest.ledger.postgres import PostgresLedger
from ingest.ledger.postgres_outbox import PostgresOutbox, PostgresVectorCache
from ragplane.core.config import Settings
from retrieval.stores.database import Database


class Kept(NamedTuple):
    """The three parts of one implementation, and how to let time pass for leases."""

    ledger: Ledger
    outbox: Outbox
    vectors: VectorCache
    wait: Callable[[float], Awaitable[None]]


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    async def wait(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
async def opened_database(postgres_home: Path) -> AsyncIterator[Database]:
    database = await Database.open(Settings(home=postgres_home))
    yield database
    await database.aclose()


@pytest.fixture(params=["memory", "postgres"])
def kept(request: pytest.FixtureRequest) -> Kept:
    """Every implementation in turn."""
    if request.param == "memory":
        clock = Clock()
        ledger = MemoryLedger(clock)
        return Kept(ledger, MemoryOutbox(ledger, clock), MemoryVectorCache(), clock.wait)
    connections = request.getfixturevalue("opened_database").connections
    return Kept(
        PostgresLedger(connections),
        PostgresOutbox(connections),
        PostgresVectorCache(connections),
        asyncio.sleep,
    )


@pytest.fixture
def ledger(kept: Kept) -> Ledger:
    return kept.ledger
