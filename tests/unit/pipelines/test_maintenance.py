"""Changing the model of a corpus, and deleting from it, over the store and ledger in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from ingest.ledger.memory import MemoryLedger
from ingest.ledger.memory_outbox import MemoryOutbox, MemoryVectorCache
from ingest.options import ParserOptions, ParserSpec
from ingest.sources import source_of
from pipelines.ingestion.documents import Terms
from pipelines.ingestion.maintenance import delete_documents, verify_corpus
from pipelines.ingestion.parts import Parts, worker_name
from pipelines.ingestion.reembed import drop_unused, reembed_corpus
from pipelines.ingestion.run import Ingestion
from ragplane.core.errors import ConfigError, InputError, StageError, UnavailableError
from ragplane.core.models import read_model
from retrieval.search import Searcher
from retrieval.stores.base import CorpusKey
from retrieval.stores.memory import MemoryStore
from serve.encoder import Embeddings, InputType
from serve.fake import FakeEncoder


class NewEncoder(FakeEncoder):
    """Another model: it counts the texts it embeds, and is gone after `answers` calls."""

    def __init__(self, answers: int = 1_000) -> None:
        super().__init__(dimensions=128)
        self.answers = answers
        self.texts: list[str] = []

    async def fingerprint(self) -> str:
        return "new-model"

    async def embed(
        self, texts: Sequence[str], *, input_type: InputType = "document"
    ) -> Embeddings:
        self.answers -= 1
        if self.answers < 0:
            raise UnavailableError("ConnectError http://127.0.0.1:9: refused")
        self.texts += texts
        return await super().embed(texts, input_type=input_type)


class Silent:
    """Progress for nobody."""

    def start(self, documents: int) -> None: ...

    def advance(self, source: str, pages: Mapping[str, int], errors: int) -> None: ...


@dataclass
class Bench:
    """One store and ledger, for any encoder."""

    store: MemoryStore
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    cache: MemoryVectorCache = field(default_factory=MemoryVectorCache)

    def parts(self, encoder: FakeEncoder, patience_s: float = 0) -> Parts:
        async def open_encoder() -> FakeEncoder:
            return encoder

        tokenizer_file = read_model("bundled").folder / "tokenizer.json"
        spec = ParserSpec(ParserOptions(tokenizer_file, limit_tokens=64), Path("home"))
        outbox = MemoryOutbox(self.ledger)
        terms = Terms(lease_s=30, patience_s=patience_s)
        return Parts(self.store, self.ledger, outbox, self.cache, open_encoder, spec, terms=terms)

    async def ingest(self, encoder: FakeEncoder, folder: Path, key: CorpusKey) -> None:
        report = await Ingestion(self.parts(encoder), 1, Silent()).run([folder], key)
        assert report.status == "completed", report.errors


@pytest.fixture
def bench(memory_store: MemoryStore) -> Bench:
    return Bench(memory_store)


@pytest.fixture
async def folder(tmp_path: Path, bench: Bench, encoder: FakeEncoder, key: CorpusKey) -> Path:
    """Three documents, which are in the corpus."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in {"gate": "opens at noon", "pump": "is green", "dome": "is round"}.items():
        (folder / f"{name}.md").write_text(f"The {name} {text}.")
    await bench.ingest(encoder, folder, key)
    return folder


async def test_a_corpus_changes_its_model(
    bench: Bench, encoder: FakeEncoder, folder: Path, key: CorpusKey
) -> None:
    """Behaviour 23."""
    old, new = await encoder.fingerprint(), NewEncoder()
    report = await reembed_corpus(bench.parts(new), key)
    assert (report.before, report.after) == (old, "new-model")
    assert (report.chunks, report.embedded) == (3, 3)
    assert report.as_json()["switched"]
    found = await Searcher(bench.store, new).search("when does the gate open", key, 1)
    assert found.result.hits[0].chunk.text == "The gate opens at noon."
    with pytest.raises(ConfigError, match="vectors of two models cannot be compared"):
        await Searcher(bench.store, encoder).search("gate", key, 1)
    assert (await verify_corpus(bench.parts(new), key)).exact

    again = await reembed_corpus(bench.parts(new), key)
    assert (again.embedded, again.as_json()["switched"]) == (0, False)
    (folder / "moat.md").write_text("The moat is deep.")
    await bench.ingest(new, folder, key)
    assert await drop_unused(bench.parts(new), key) == old
    assert await drop_unused(bench.parts(new), key) is None


async def test_the_way_back_embeds_only_what_came_since(
    bench: Bench, encoder: FakeEncoder, folder: Path, key: CorpusKey
) -> None:
    """Behaviour 23."""
    await reembed_corpus(bench.parts(NewEncoder()), key)
    (folder / "moat.md").write_text("The moat is deep.")
    await bench.ingest(NewEncoder(), folder, key)
    back = await reembed_corpus(bench.parts(encoder), key)
    assert (back.after, back.embedded) == (await encoder.fingerprint(), 1)
    await bench.ingest(encoder, folder, key)


async def test_an_encoder_that_goes_down_leaves_the_corpus_as_it_is(
    bench: Bench, encoder: FakeEncoder, folder: Path, key: CorpusKey
) -> None:
    """Behaviours 23 and 28: the next run goes on."""
    with pytest.raises(StageError, match=r"embed: .*ConnectError") as caught:
        await reembed_corpus(bench.parts(NewEncoder(answers=1)), key)
    assert caught.value.stage == "embed"
    assert await bench.store.fingerprint(key) == await encoder.fingerprint()
    found = await Searcher(bench.store, encoder).search("gate", key, 1)
    assert found.result.hits
    assert (await reembed_corpus(bench.parts(NewEncoder()), key)).embedded == 3


async def test_a_store_that_is_not_as_the_ledger_says_is_not_switched(
    bench: Bench, encoder: FakeEncoder, folder: Path, key: CorpusKey
) -> None:
    """Behaviours 23 and 24."""
    await bench.store.delete_points(key, [next(iter(await bench.store.points(key)))])
    new = NewEncoder()
    with pytest.raises(StageError, match="1 points are not as the ledger says"):
        await reembed_corpus(bench.parts(new), key)
    assert new.texts == ["probe"]  # refused before any work
    assert await bench.store.fingerprint(key) == await encoder.fingerprint()


async def test_documents_that_are_being_written_are_waited_for(
    bench: Bench, encoder: FakeEncoder, folder: Path, key: CorpusKey
) -> None:
    """Behaviours 20 and 23: a worker that lives keeps the corpus at its model."""
    await bench.ledger.requeue(key, list(await ids(bench, key)))
    [claim] = await bench.ledger.claim(key, worker_name(), lease_s=30, limit=1)
    with pytest.raises(StageError, match="being written, so it was not switched"):
        await reembed_corpus(bench.parts(NewEncoder()), key)
    assert await bench.store.fingerprint(key) == await encoder.fingerprint()
    await bench.ledger.release(claim)
    report = await reembed_corpus(bench.parts(NewEncoder()), key)
    assert report.embedded == 0  # the first run embedded all


async def test_a_dead_worker_is_not_waited_for(
    bench: Bench, encoder: FakeEncoder, folder: Path, key: CorpusKey
) -> None:
    """Behaviours 20 and 23."""
    await bench.ledger.requeue(key, list(await ids(bench, key)))
    dead = worker_name().rpartition("/")[0] + "/999999999-1"
    assert await bench.ledger.claim(key, dead, lease_s=30, limit=1)
    assert (await reembed_corpus(bench.parts(NewEncoder()), key)).as_json()["switched"]


async def test_unknown_corpora_are_refused(bench: Bench, encoder: FakeEncoder) -> None:
    key = CorpusKey("acme", "nope")
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: reembed_corpus(bench.parts(encoder), key),
        lambda: drop_unused(bench.parts(encoder), key),
        lambda: delete_documents(bench.parts(encoder), key, None),
    ]
    for call in calls:
        with pytest.raises(InputError, match="corpus 'nope' does not exist for tenant 'acme'"):
            await call()


async def test_deleting_leaves_what_waits_to_be_read(
    bench: Bench, encoder: FakeEncoder, folder: Path, key: CorpusKey
) -> None:
    """Behaviour 22."""
    documents = await bench.ledger.documents(key)
    gate, pump = (source_of(folder / name) for name in ("gate.md", "pump.md"))
    await bench.ledger.requeue(key, [documents[pump].id])
    parts = bench.parts(NewEncoder(answers=0))  # no model is needed
    assert await delete_documents(parts, key, {gate}) == (1, [])
    left = await bench.ledger.documents(key)
    assert gate not in left
    assert (left[pump].status, left[pump].attempts) == ("pending", 0)
    assert gate not in await bench.store.documents(key)
    assert len(await bench.store.dense(key, np.ones(256, np.float32), 9)) == 2


async def test_a_document_that_a_worker_holds_goes_later_and_says_so(
    bench: Bench, encoder: FakeEncoder, folder: Path, key: CorpusKey
) -> None:
    """Behaviours 20 and 22."""
    await bench.ledger.requeue(key, list(await ids(bench, key)))
    held = await bench.ledger.claim(key, worker_name(), lease_s=30, limit=1)
    gone, errors = await delete_documents(bench.parts(encoder), key, None)
    assert gone == 2
    assert [str(error) for error in errors] == ["store: 1 documents go when their worker is done"]
    await bench.ledger.release(held[0])
    assert await delete_documents(bench.parts(encoder), key, None) == (1, [])
    assert await bench.store.documents(key) == {}


async def ids(bench: Bench, key: CorpusKey) -> set[object]:
    return {document.id for document in (await bench.ledger.documents(key)).values()}
