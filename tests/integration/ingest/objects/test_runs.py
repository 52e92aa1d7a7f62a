"""Runs and workers over a bucket: what they fetch, store and report."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.ledger.files import stat_files
from ingest.ledger.memory import MemoryLedger
from ingest.ledger.memory_outbox import MemoryOutbox, MemoryVectorCache
from ingest.options import ParserOptions, ParserSpec
from ingest.sources import list_sources
from pipelines.ingestion.documents import Terms
from pipelines.ingestion.parts import Parts
from pipelines.ingestion.report import IngestReport, Silent
from pipelines.ingestion.run import Ingestion
from pipelines.ingestion.service import Worker
from ragplane.core.errors import InputError
from ragplane.core.models import read_model
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.fake import FakeEncoder
from tests.integration.ingest.s3_server import PAGE_KEYS, Bucket


@pytest.fixture
def parts() -> Parts:
    """Everything in memory; real parser processes."""

    async def open_encoder() -> FakeEncoder:
        return FakeEncoder()

    tokenizer_file = read_model("bundled").folder / "tokenizer.json"
    spec = ParserSpec(ParserOptions(tokenizer_file, limit_tokens=64), Path("home"))
    ledger = MemoryLedger()
    terms = Terms(lease_s=30, patience_s=0)
    outbox, cache = MemoryOutbox(ledger), MemoryVectorCache()
    return Parts(MemoryStore(), ledger, outbox, cache, open_encoder, spec, terms=terms)


@pytest.fixture(autouse=True)
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No copy of an object outlives its test."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


async def run(parts: Parts, key: CorpusKey, *paths: str | Path) -> IngestReport:
    return await Ingestion(parts, 1, Silent()).run(paths, key)


def documents(report: IngestReport) -> dict[str, int]:
    return {change: number for change, number in report.documents.items() if number}


async def test_a_bucket_is_read_and_kept_in_step(
    parts: Parts, key: CorpusKey, bucket: Bucket, tmp_path: Path
) -> None:
    """Behaviours 19, 22: each object is fetched once, and none again that did not change."""
    (tmp_path / "beside.md").write_text("A valve lies beside the bucket.")
    bucket.put(**{"a/gate 1.md": "# Gate\n\nThe gate opens at noon.", "pump.txt": "A pump."})
    paths = (bucket.uri(), tmp_path)
    first = await run(parts, key, *paths)
    assert (first.status, documents(first)) == ("completed", {"added": 3})
    assert sorted(bucket.fetched()) == ["a/gate%201.md", "pump.txt"]
    assert isinstance(parts.store, MemoryStore)
    stored = {doc.source: doc for doc in (await parts.store.documents(key)).values()}
    assert stored[bucket.uri("a/gate%201.md")].title == "Gate"
    assert stored[bucket.uri("pump.txt")].title == "pump"
    assert len(stored) == 3

    again = await run(parts, key, *paths)
    assert (again.status, documents(again)) == ("completed", {"unchanged": 3})
    assert bucket.fetched() == []

    bucket.put(**{"pump.txt": "Another pump."})
    bucket.move("a/gate 1.md", "b/gate.md")
    bucket.server.requests()
    third = await run(parts, key, *paths)
    assert documents(third) == {"moved": 1, "updated": 1, "unchanged": 1}
    assert sorted(bucket.fetched()) == ["b/gate.md", "pump.txt"]
    assert await parts.store.lexical(key, "another", 10)

    bucket.delete("pump.txt", "b/gate.md")
    assert documents(await run(parts, key, *paths)) == {"unchanged": 1, "deleted": 2}
    assert len(await parts.store.documents(key)) == 1


async def test_a_worker_fetches_what_a_run_queued(
    parts: Parts, key: CorpusKey, bucket: Bucket
) -> None:
    """Behaviour 25: an object that is gone or forbidden by then costs that document only."""
    bucket.put(a="Gate.", gone="Pump.", refused="Valve.")
    await parts.ledger.sync(key, stat_files(list_sources([bucket.uri()])), "p1")
    bucket.delete("gone")
    bucket.server.refuse("GET", "/refused")
    assert await Worker(parts, 1).run(until_idle=True) == {"read": 1, "failed": 2}
    errors = {e.source: (e.stage, e.cause) for e in await parts.ledger.errors(key, 10)}
    assert errors == {
        bucket.uri("gone"): ("parse", "NoSuchKey: The specified key does not exist."),
        bucket.uri("refused"): ("parse", "Refused"),
    }
    bucket.server.refuse("", "")
    report = await run(parts, key, bucket.uri())
    assert documents(report) == {"unchanged": 1, "added": 1, "deleted": 1}


async def test_a_worker_that_cannot_fetch_stops_and_leaves_the_documents_to_others(
    parts: Parts, key: CorpusKey, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 20."""
    bucket.put(a="Gate.")
    await parts.ledger.sync(key, stat_files(list_sources([bucket.uri()])), "p1")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "boto3", None)
        assert await Worker(parts, 1).run(until_idle=True) == {"stopped": 1}
    assert [row.status for row in (await parts.ledger.documents(key)).values()] == ["pending"]
    assert await Worker(parts, 1).run(until_idle=True) == {"read": 1}


async def test_a_wrong_bucket_is_wrong_use(parts: Parts, key: CorpusKey, bucket: Bucket) -> None:
    with pytest.raises(InputError, match="NoSuchBucket"):
        await run(parts, key, "s3://no-such-bucket/docs", bucket.uri())
    assert await parts.ledger.runs(key, 1) == []


async def test_a_store_that_is_down_fails_the_run(
    parts: Parts, key: CorpusKey, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviours 22, 25: at stage `list`, and nothing is deleted."""
    bucket.put(a="Gate.")
    await run(parts, key, bucket.uri())
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    report = await run(parts, key, bucket.uri())
    assert (report.status, dict(report.stages)) == ("failed", {"list": 1})
    assert documents(report) == {}
    assert [row.status for row in (await parts.ledger.documents(key)).values()] == ["done"]


async def test_a_listing_that_breaks_off_deletes_nothing(
    parts: Parts, key: CorpusKey, bucket: Bucket
) -> None:
    """Behaviours 22, 25."""
    names = [str(number) for number in range(PAGE_KEYS + 1)]
    bucket.put(**{name: f"Gate {name}." for name in names})
    await run(parts, key, bucket.uri())
    bucket.server.refuse("GET", "continuation-token")
    report = await run(parts, key, bucket.uri())
    assert (report.status, dict(report.stages)) == ("completed_with_errors", {"list": 1})
    assert documents(report) == {"unchanged": PAGE_KEYS}
    assert len(await parts.ledger.documents(key)) == len(names)


@pytest.mark.parametrize(
    ("size_bytes", "cause"),
    [(10, "took more than 1 MiB of memory"), ((1 << 20) + 1, "larger than 1 MiB")],
)
async def test_a_copy_goes_with_the_parser_that_is_killed(
    parts: Parts, key: CorpusKey, bucket: Bucket, size_bytes: int, cause: str
) -> None:
    """Behaviour 26; what could not be read into memory is not fetched whole."""
    bucket.put(a="x" * size_bytes)
    small = replace(parts, parser=replace(parts.parser, memory_bytes=1 << 20))
    report = await run(small, key, bucket.uri())
    assert [(error.stage, error.cause) for error in report.errors] == [("parse", cause)]
