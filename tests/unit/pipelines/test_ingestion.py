"""A run over files: what it reports, and that it changes the store only as the files changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import get_args

import pytest

from ingest.ledger.memory import MemoryLedger
from ingest.ledger.memory_outbox import MemoryOutbox, MemoryVectorCache
from ingest.options import ParserOptions, ParserSpec
from pipelines.ingestion.documents import Terms
from pipelines.ingestion.parts import Parts
from pipelines.ingestion.report import Change, IngestReport
from pipelines.ingestion.run import Ingestion
from ragplane.core.errors import (
    ConfigError,
    InputError,
    NonFiniteError,
    StageError,
    UnavailableError,
)
from ragplane.core.models import read_model
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.encoder import Embeddings, InputType
from serve.fake import FakeEncoder


class Steps:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.total = 0
        self.done: list[str] = []

    def start(self, documents: int) -> None:
        self.total = documents

    def advance(self, source: str, pages: Mapping[str, int], errors: int) -> None:
        self.done.append(source)


class DyingEncoder(FakeEncoder):
    """Answers the probe, then is gone."""

    calls = 0

    async def embed(
        self, texts: Sequence[str], *, input_type: InputType = "document"
    ) -> Embeddings:
        self.calls += 1
        if self.calls > 1:
            raise UnavailableError("ConnectError http://127.0.0.1:9: refused")
        return await super().embed(texts, input_type=input_type)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "gate.md").write_text("# Gate\n\nThe gate opens at noon.")
    (folder / "pump.txt").write_text("The pump stands in the cellar.")
    return folder


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger()


Make = Callable[..., Ingestion]


@pytest.fixture
def ingestion(memory_store: MemoryStore, ledger: MemoryLedger) -> Make:
    """Makes runs over one store and one ledger."""
    tokenizer_file = read_model("bundled").folder / "tokenizer.json"
    spec = ParserSpec(ParserOptions(tokenizer_file, limit_tokens=64), Path("home"))
    outbox, cache = MemoryOutbox(ledger), MemoryVectorCache()

    def make(encoder: FakeEncoder, steps: Steps | None = None, patience_s: float = 0) -> Ingestion:
        async def open_encoder() -> FakeEncoder:
            return encoder

        terms = Terms(lease_s=30, patience_s=patience_s)
        parts = Parts(memory_store, ledger, outbox, cache, open_encoder, spec, terms=terms)
        return Ingestion(parts, workers=1, progress=steps or Steps())

    return make


async def test_added_unchanged_updated_deleted(
    ingestion: Make, folder: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    steps = Steps()
    first = await ingestion(encoder, steps).run([folder], key)
    assert first.status == "completed"
    assert first.as_json()["documents"] == counts(added=2)
    assert first.as_json()["pages"]["text"] == 2
    assert (steps.total, len(steps.done)) == (2, 2)

    second = await ingestion(encoder).run([folder], key)
    assert second.as_json()["documents"] == counts(unchanged=2)
    assert second.chunks == 0

    (folder / "gate.md").write_text("# Gate\n\nThe gate opens at dusk.")
    (folder / "pump.txt").unlink()
    third = await ingestion(encoder).run([folder], key)
    assert third.as_json()["documents"] == counts(updated=1, deleted=1)
    (document,) = (await memory_store.documents(key)).values()
    assert document.generation == 2
    assert "dusk" in (await memory_store.accepted_text(key, document.id) or "")
    assert not await memory_store.lexical(key, "noon pump", 10)


async def test_a_document_that_fails_is_named_and_the_others_are_kept(
    ingestion: Make, folder: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj")
    report = await ingestion(encoder).run([folder], key)
    assert report.status == "completed_with_errors"
    assert report.as_json()["documents"] == counts(added=2, failed=1)
    (error,) = report.as_json()["errors"]
    assert error["document"].endswith("/broken.pdf")
    assert error["stage"] == "parse"


async def test_an_update_that_fails_keeps_the_last_good_generation(
    ingestion: Make, folder: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    await ingestion(encoder).run([folder], key)
    (folder / "gate.md").write_bytes(b"")
    report = await ingestion(encoder).run([folder], key)
    assert report.as_json()["documents"] == counts(unchanged=1, failed=1)
    assert await memory_store.lexical(key, "noon", 10)


async def test_a_folder_with_nothing_readable_is_a_failed_run(
    ingestion: Make, tmp_path: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    (tmp_path / "empty.txt").touch()
    report = await ingestion(encoder).run([tmp_path / "empty.txt"], key)
    assert report.status == "failed"


async def test_an_encoder_that_is_down_stops_the_run_at_stage_embed(
    ingestion: Make, folder: Path, memory_store: MemoryStore, key: CorpusKey
) -> None:
    report = await ingestion(DyingEncoder(dimensions=256)).run([folder], key)
    assert report.status == "failed"
    assert [error.stage for error in report.errors] == ["embed"]
    assert "ConnectError http://127.0.0.1:9: refused" in report.errors[0].cause
    assert await memory_store.documents(key) == {}


async def test_a_text_that_the_encoder_refuses_costs_its_document_only(
    ingestion: Make, folder: Path, memory_store: MemoryStore, key: CorpusKey
) -> None:
    class Picky(FakeEncoder):
        async def embed(
            self, texts: Sequence[str], *, input_type: InputType = "document"
        ) -> Embeddings:
            if any("pump" in text for text in texts):
                raise NonFiniteError("input 0 gave NaN")
            return await super().embed(texts, input_type=input_type)

    report = await ingestion(Picky(dimensions=256)).run([folder], key)
    assert report.status == "completed_with_errors"
    assert report.as_json()["documents"] == counts(added=1, failed=1)
    assert (report.errors[0].stage, report.errors[0].cause) == (
        "embed",
        "NonFiniteError: input 0 gave NaN",
    )


async def test_a_document_without_text_is_kept_without_chunks(
    ingestion: Make, tmp_path: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    (tmp_path / "blank.txt").write_text(" \n ")
    report = await ingestion(encoder).run([tmp_path / "blank.txt"], key)
    assert report.status == "completed"
    assert (report.as_json()["pages"]["blank"], report.chunks, report.tokens) == (1, 0, 0)


async def test_a_path_that_does_not_exist_is_refused(
    ingestion: Make, tmp_path: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        await ingestion(encoder).run([tmp_path / "nowhere"], key)


async def test_a_corpus_of_another_model_is_refused(
    ingestion: Make, folder: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    await ingestion(encoder).run([folder], key)
    (folder / "more.txt").write_text("Another pump.")
    with pytest.raises(ConfigError):
        await ingestion(FakeEncoder(dimensions=32)).run([folder], key)


@pytest.mark.parametrize(
    ("added", "errors", "stopped", "status"),
    [
        (1, 0, False, "completed"),
        (0, 0, False, "completed"),
        (1, 1, False, "completed_with_errors"),
        (0, 1, False, "failed"),
        (1, 1, True, "failed"),
    ],
)
def test_the_status_is_completed_only_if_nothing_failed(
    added: int, errors: int, stopped: bool, status: str
) -> None:
    report = IngestReport("c", stopped=stopped)
    report.documents["added"] = added
    report.errors = [StageError("parse", "broken")] * errors
    assert report.status == status


async def test_a_file_that_moved_is_not_read_again(
    ingestion: Make,
    folder: Path,
    memory_store: MemoryStore,
    encoder: FakeEncoder,
    key: CorpusKey,
) -> None:
    await ingestion(encoder).run([folder], key)
    before = await memory_store.points(key)
    (folder / "gate.md").rename(folder / "door.md")
    steps = Steps()
    report = await ingestion(encoder, steps).run([folder], key)
    assert report.as_json()["documents"] == counts(moved=1, unchanged=1)
    assert steps.done == []
    assert await memory_store.points(key) == before
    assert (folder / "door.md").as_uri() in await memory_store.documents(key)


async def test_an_encoder_that_comes_back_is_waited_for(
    ingestion: Make, folder: Path, key: CorpusKey
) -> None:
    """Behaviour 28."""

    class Restarting(FakeEncoder):
        refusals = 3

        async def embed(
            self, texts: Sequence[str], *, input_type: InputType = "document"
        ) -> Embeddings:
            if self.refusals:
                self.refusals -= 1
                raise UnavailableError("ConnectError http://127.0.0.1:9: refused")
            return await super().embed(texts, input_type=input_type)

    report = await ingestion(Restarting(dimensions=256), patience_s=30).run([folder], key)
    assert report.as_json()["documents"] == counts(added=2)


async def test_what_was_parsed_and_embedded_is_kept_when_the_encoder_stays_down(
    ingestion: Make, folder: Path, ledger: MemoryLedger, key: CorpusKey
) -> None:
    """Behaviours 21 and 28: the next run embeds only what is left."""
    asked: list[str] = []

    class Counting(FakeEncoder):
        async def embed(
            self, texts: Sequence[str], *, input_type: InputType = "document"
        ) -> Embeddings:
            asked.extend(texts)
            return await super().embed(texts, input_type=input_type)

    stopped = await ingestion(DyingEncoder(dimensions=256)).run([folder], key)
    assert stopped.status == "failed"
    again = await ingestion(Counting(dimensions=256)).run([folder], key)
    assert again.as_json()["documents"] == counts(added=2)
    asked.clear()
    third = await ingestion(Counting(dimensions=256)).run([folder], key)
    assert third.as_json()["documents"] == counts(unchanged=2)
    assert asked == []
    assert [run.status for run in await ledger.runs(key, 3)] == ["completed", "completed", "failed"]


async def test_documents_count_as_what_the_store_had_of_them(
    ingestion: Make, folder: Path, ledger: MemoryLedger, encoder: FakeEncoder, key: CorpusKey
) -> None:
    """Behaviour 25: a second try is no new document, a first success is, whatever came before."""
    (folder / "late.txt").write_bytes(b"")
    first = await ingestion(encoder).run([folder], key)
    assert first.as_json()["documents"] == counts(added=2, failed=1)
    (folder / "late.txt").write_text("The dome is round.")
    gate = (await ledger.documents(key))[(folder / "gate.md").as_uri()]
    await ledger.requeue(key, [gate.id])
    second = await ingestion(encoder).run([folder], key)
    assert second.as_json()["documents"] == counts(added=1, retried=1, unchanged=1)


def counts(**given: int) -> dict[str, int]:
    return dict.fromkeys(get_args(Change), 0) | given
