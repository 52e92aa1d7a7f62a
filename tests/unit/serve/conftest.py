"""One real MiniLM for all tests of the server, and clients of an application around it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from ragplane.core.config import Settings
from serve.batching.batcher import Batcher
from serve.batching.queue import Limits
from serve.batching.work import BatchReport
from serve.http.app import create_app
from serve.local import LocalEncoder
from tests.unit.serve.stub_backend import StubBackend, make


@pytest.fixture(scope="session")
def settings(model_home: Path) -> Settings:
    return Settings(home=model_home)


@pytest.fixture(scope="session")
def encoder(settings: Settings) -> Iterator[LocalEncoder]:
    encoder = asyncio.run(LocalEncoder.open(settings))
    yield encoder
    asyncio.run(encoder.aclose())


@pytest.fixture
async def client(settings: Settings, encoder: LocalEncoder) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(settings, encoder))
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        yield client


@pytest.fixture
def backend() -> StubBackend:
    return StubBackend()


@pytest.fixture
def reports() -> list[BatchReport]:
    return []


@pytest.fixture
async def batcher(backend: StubBackend, reports: list[BatchReport]) -> AsyncIterator[Batcher]:
    batcher = make(backend, 2, Limits(64), restart_after_s=0.05, stuck_after_s=2.0)
    batcher.listen(reports.append)
    yield batcher
    backend.gate.set()
    await batcher.aclose()
