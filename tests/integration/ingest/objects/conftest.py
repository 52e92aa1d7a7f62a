"""A bucket on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.integration.ingest.s3_server import Bucket, S3Server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture
def bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty bucket of the store that the environment names."""
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    with closing(s3_server.bucket()) as bucket:
        yield bucket
    s3_server.refuse("", "")
