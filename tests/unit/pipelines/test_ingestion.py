"""A run over files: what it reports, and that it changes the store only as the files changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ingest.workers import ParserSpec
from pipelines.ingestion import Ingestion, IngestReport
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

    def advance(self, source: str, pages: int) -> None:
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


def ingestion(store: MemoryStore, encoder: FakeEncoder, steps: Steps | None = None) -> Ingestion:
    tokenizer_file = read_model("bundled").folder / "tokenizer.json"
    spec = ParserSpec(tokenizer_file, limit_tokens=64, ocr_threads=1, timeout_s=60)
    return Ingestion(store, encoder, spec, workers=1, progress=steps or Steps())


async def test_added_unchanged_updated_deleted(
    folder: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    steps = Steps()
    first = await ingestion(memory_store, encoder, steps).run([folder], key)
    assert first.status == "completed"
    assert first.as_json()["documents"] == counts(added=2)
    assert first.as_json()["pages"]["text"] == 2
    assert (steps.total, len(steps.done)) == (2, 2)

    second = await ingestion(memory_store, encoder).run([folder], key)
    assert second.as_json()["documents"] == counts(unchanged=2)
    assert second.chunks == 0

    (folder / "gate.md").write_text("# Gate\n\nThe gate opens at dusk.")
    (folder / "pump.txt").unlink()
    third = await ingestion(memory_store, encoder).run([folder], key)
    assert third.as_json()["documents"] == counts(updated=1, deleted=1)
    (document,) = (await memory_store.documents(key)).values()
    assert document.generation == 2
    assert "dusk" in (await memory_store.accepted_text(key, document.id) or "")
    assert not await memory_store.lexical(key, "noon pump", 10)


async def test_a_document_that_fails_is_named_and_the_others_are_kept(
    folder: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    report = await ingestion(memory_store, encoder).run([folder], key)
    assert report.status == "completed_with_errors"
    assert report.as_json()["documents"] == counts(added=2, failed=1)
    (error,) = report.as_json()["errors"]
    assert error["document"].endswith("/broken.pdf")
    assert error["stage"] == "parse"


async def test_an_update_that_fails_keeps_the_last_good_generation(
    folder: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    await ingestion(memory_store, encoder).run([folder], key)
    (folder / "gate.md").write_bytes(b"")
    report = await ingestion(memory_store, encoder).run([folder], key)
    assert report.as_json()["documents"] == counts(unchanged=1, failed=1)
    assert await memory_store.lexical(key, "noon", 10)


async def test_a_folder_with_nothing_readable_is_a_failed_run(
    tmp_path: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    (tmp_path / "empty.txt").touch()
    report = await ingestion(memory_store, encoder).run([tmp_path / "empty.txt"], key)
    assert report.status == "failed"


async def test_an_encoder_that_is_down_stops_the_run_at_stage_embed(
    folder: Path, memory_store: MemoryStore, key: CorpusKey
) -> None:
    report = await ingestion(memory_store, DyingEncoder(dimensions=256)).run([folder], key)
    assert report.status == "failed"
    assert [error.stage for error in report.errors] == ["embed"]
    assert "ConnectError http://127.0.0.1:9: refused" in report.errors[0].cause
    assert await memory_store.documents(key) == {}


async def test_a_text_that_the_encoder_refuses_costs_its_document_only(
    folder: Path, memory_store: MemoryStore, key: CorpusKey
) -> None:
    class Picky(FakeEncoder):
        async def embed(
            self, texts: Sequence[str], *, input_type: InputType = "document"
        ) -> Embeddings:
            if any("pump" in text for text in texts):
                raise NonFiniteError("input 0 gave NaN")
            return await super().embed(texts, input_type=input_type)

    report = await ingestion(memory_store, Picky(dimensions=256)).run([folder], key)
    assert report.status == "completed_with_errors"
    assert report.as_json()["documents"] == counts(added=1, failed=1)
    assert (report.errors[0].stage, report.errors[0].cause) == (
        "embed",
        "NonFiniteError: input 0 gave NaN",
    )


async def test_a_document_without_text_is_kept_without_chunks(
    tmp_path: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    (tmp_path / "blank.txt").write_text(" \n ")
    report = await ingestion(memory_store, encoder).run([tmp_path / "blank.txt"], key)
    assert report.status == "completed"
    assert (report.as_json()["pages"]["blank"], report.chunks, report.tokens) == (1, 0, 0)


async def test_a_path_that_does_not_exist_is_refused(
    tmp_path: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        await ingestion(memory_store, encoder).run([tmp_path / "nowhere"], key)


async def test_a_corpus_of_another_model_is_refused(
    folder: Path, memory_store: MemoryStore, encoder: FakeEncoder, key: CorpusKey
) -> None:
    await ingestion(memory_store, encoder).run([folder], key)
    with pytest.raises(ConfigError):
        await ingestion(memory_store, FakeEncoder(dimensions=32)).run([folder], key)


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


def counts(**given: int) -> dict[str, int]:
    return {
        change: given.get(change, 0)
        for change in ("added", "updated", "unchanged", "deleted", "failed")
    }
