"""A tenant's vision budget is one for all of its runs."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from ingest.ledger.memory import MemoryLedger
from ingest.ledger.memory_outbox import MemoryOutbox, MemoryVectorCache
from ingest.options import ParserOptions, ParserSpec, VlmSettings
from ingest.parsed import ParseRequest, ParseResult, flowing_page
from ingest.sources import path_of
from ingest.vlm.base import Endpoint
from ingest.workers import Checkpoints
from pipelines.ingestion import pool
from pipelines.ingestion.documents import Terms
from pipelines.ingestion.parts import Parts
from pipelines.ingestion.run import Ingestion
from ragplane.core.models import read_model
from ragplane.core.schema import Document
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.fake import FakeEncoder
from tests.unit.pipelines.test_faults import Silent

TOKENS = 400


class Spender:
    """A parser whose documents cost TOKENS each; it keeps what it was told of the tenant's."""

    told: ClassVar[list[int]] = []

    def __init__(self, spec: ParserSpec) -> None:
        assert spec.options.vlm is not None

    @asynccontextmanager
    async def file_of(self, source: str) -> AsyncIterator[Path]:
        yield path_of(source)

    async def parse(self, request: ParseRequest, checkpoints: Checkpoints) -> ParseResult:
        self.told.append(request.vlm_tokens_spent)
        page = replace(flowing_page([], 0.1), vlm_tokens=TOKENS)
        document = Document(
            id=request.document_id,
            tenant=request.tenant,
            corpus=request.corpus,
            source=request.source,
            sha256=hashlib.sha256(request.path.read_bytes()).hexdigest(),
            mime="text/plain",
            title="",
            generation=request.generation,
        )
        return ParseResult(document, (page,), ())

    def close(self) -> None: ...


async def test_what_earlier_documents_and_runs_cost_is_known_to_the_next(
    tmp_path: Path, encoder: FakeEncoder, key: CorpusKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 3: another run, even of another process, starts where the tenant stands."""
    monkeypatch.setattr(pool, "ParserProcess", Spender)
    monkeypatch.setattr(Spender, "told", [])
    ledger = MemoryLedger()
    tokenizer_file = read_model("bundled").folder / "tokenizer.json"
    vlm = VlmSettings(Endpoint("http://127.0.0.1:9/v1", "m", None), tenant_tokens=1000)
    spec = ParserSpec(ParserOptions(tokenizer_file, limit_tokens=64, vlm=vlm), Path("home"))

    async def open_encoder() -> FakeEncoder:
        return encoder

    async def run() -> None:
        parts = Parts(
            MemoryStore(),
            ledger,
            MemoryOutbox(ledger),
            MemoryVectorCache(),
            open_encoder,
            spec,
            terms=Terms(lease_s=30, patience_s=0),
        )
        report = await Ingestion(parts, workers=1, progress=Silent()).run([tmp_path], key)
        assert report.status == "completed", report.errors

    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_text("b")
    await run()
    (tmp_path / "c.txt").write_text("c")
    await run()
    assert Spender.told == [0, TOKENS, 2 * TOKENS]
