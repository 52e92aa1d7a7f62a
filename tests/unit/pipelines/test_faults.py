"""A ledger that goes away in mid-run, and who counts as dead."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from ingest.ledger.memory import MemoryLedger
from ingest.ledger.memory_outbox import MemoryOutbox, MemoryVectorCache
from ingest.ledger.records import LedgerStatus, RunStatus
from ingest.options import ParserOptions, ParserSpec
from pipelines.ingestion.documents import Terms
from pipelines.ingestion.parts import Parts, is_dead, worker_name
from pipelines.ingestion.report import IngestReport
from pipelines.ingestion.run import Ingestion
from ragplane.core.errors import StageError, UnavailableError
from ragplane.core.models import read_model
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.fake import FakeEncoder

REFUSED = "PostgreSQL at /run cannot connect: refused"


class Silent:
    """Progress for nobody."""

    def start(self, documents: int) -> None:
        """See Progress."""

    def advance(self, source: str, pages: Mapping[str, int], errors: int) -> None:
        """See Progress."""


class Flaky(MemoryLedger):
    """Fails at these calls, counted from 1, of what a run asks beside its claims."""

    def __init__(self, *failing: int) -> None:
        super().__init__()
        self.calls = 0
        self.failing = failing

    def call(self) -> None:
        self.calls += 1
        if self.calls in self.failing or -1 in self.failing:
            raise UnavailableError(REFUSED)

    async def holders(self, key: CorpusKey) -> set[str]:
        self.call()
        return await super().holders(key)

    async def status(self, key: CorpusKey) -> LedgerStatus:
        self.call()
        return await super().status(key)

    async def end_run(
        self, run_id: UUID, status: RunStatus, totals: Mapping[str, Mapping[str, int]]
    ) -> None:
        self.call()
        await super().end_run(run_id, status, totals)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "gate.md").write_text("# Gate\n\nThe gate opens at noon.")
    return tmp_path / "docs"


class RefusingStore(MemoryStore):
    """Has no place for a corpus."""

    async def open_corpus(self, key: CorpusKey, *, fingerprint: str, dimensions: int) -> None:
        raise StageError("store", "too many collections")


async def ingest(
    ledger: MemoryLedger,
    encoder: FakeEncoder,
    folder: Path,
    key: CorpusKey,
    patience_s: float,
    store: MemoryStore | None = None,
) -> IngestReport:
    async def open_encoder() -> FakeEncoder:
        return encoder

    tokenizer_file = read_model("bundled").folder / "tokenizer.json"
    parts = Parts(
        store or MemoryStore(),
        ledger,
        MemoryOutbox(ledger),
        MemoryVectorCache(),
        open_encoder,
        ParserSpec(ParserOptions(tokenizer_file, limit_tokens=64), Path("home")),
        terms=Terms(lease_s=30, patience_s=patience_s),
    )
    return await Ingestion(parts, workers=1, progress=Silent()).run([folder], key)


async def test_a_ledger_that_comes_back_is_waited_for_whatever_it_was_asked(
    folder: Path, encoder: FakeEncoder, key: CorpusKey
) -> None:
    """Behaviour 25: what was counted before the failure is not counted twice."""
    ledger = Flaky(1, 3, 5, 7, 9)
    report = await ingest(ledger, encoder, folder, key, patience_s=20)
    assert ledger.calls >= 8
    assert (report.status, report.documents.total()) == ("completed", 1)
    assert [run.status for run in await ledger.runs(key, 2)] == ["completed"]


async def test_a_ledger_that_stays_down_stops_the_run_at_stage_store(
    folder: Path, encoder: FakeEncoder, key: CorpusKey
) -> None:
    """Behaviour 25."""
    report = await ingest(Flaky(-1), encoder, folder, key, patience_s=0)
    assert report.status == "failed"
    assert [(e.stage, e.cause) for e in report.errors] == [
        ("store", f"UnavailableError: {REFUSED}")
    ]


async def test_a_corpus_that_the_store_refuses_stops_the_run(
    folder: Path, encoder: FakeEncoder, key: CorpusKey
) -> None:
    """Behaviour 25: it is no fault of its documents, which stay to be read."""
    ledger = MemoryLedger()
    report = await ingest(ledger, encoder, folder, key, patience_s=0, store=RefusingStore())
    assert report.status == "failed"
    assert [(e.stage, e.document, e.cause) for e in report.errors] == [
        ("store", None, "too many collections")
    ]
    assert "failed" not in (await ledger.status(key)).documents


async def test_a_run_that_never_met_its_encoder_is_failed_in_the_history_too(
    folder: Path, key: CorpusKey
) -> None:
    """Behaviours 25 and 28."""

    class Down(FakeEncoder):
        async def fingerprint(self) -> str:
            raise UnavailableError("ConnectError http://127.0.0.1:9: refused")

    ledger = MemoryLedger()
    report = await ingest(ledger, Down(), folder, key, patience_s=0)
    assert [error.stage for error in report.errors] == ["embed"]
    assert [run.status for run in await ledger.runs(key, 1)] == ["failed"]


def test_who_is_dead() -> None:
    """Behaviour 20: leases of the dead of this machine end at once, and no others."""
    host, started_s = socket.gethostname(), psutil.Process().create_time()
    assert not is_dead(worker_name())
    assert not is_dead(f"{host}/{os.getpid()}-{started_s + 1:.0f}")  # the clock was set
    assert is_dead(f"{host}/{os.getpid()}-{started_s - 60:.0f}")  # its number was given again
    assert not is_dead(f"{host}-2/{os.getpid()}-{started_s - 60:.0f}")
    assert not is_dead("a name of another kind")


def test_a_killed_worker_that_nobody_collects_is_dead() -> None:
    """Behaviour 20: as in a container whose first process collects nobody."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = psutil.Process(child.pid)
        name = f"{socket.gethostname()}/{child.pid}-{process.create_time():.0f}"
        assert not is_dead(name)
        process.kill()
        while process.status() != psutil.STATUS_ZOMBIE:
            pass
        assert is_dead(name)
