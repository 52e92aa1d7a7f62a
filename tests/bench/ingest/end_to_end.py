"""A run from files to the store beside the encoder alone, given the very same chunks."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from pipelines.ingestion.opening import open_parts
from pipelines.ingestion.run import Ingestion
from ragplane.core.cpu import available_cpus
from retrieval.stores.base import CorpusKey
from retrieval.stores.database import Database
from retrieval.stores.postgres import PostgresStore
from serve.encoder import Embeddings, InputType
from serve.local import LocalEncoder
from tests.bench.ingest.corpora import simple_pdf
from tests.bench.ingest.options import Options, settings
from tests.bench.ingest.silent import Silent
from tests.bench.report import table

_PAGES_OF_A_DOCUMENT = 8
_CHUNKS_OF_A_PAGE = 6


class Recorder:
    """The encoder, and the texts that it was given."""

    def __init__(self, encoder: LocalEncoder) -> None:
        self._encoder = encoder
        self.texts: list[str] = []
        self.tokens = 0
        self.asked_at_s: list[float] = []  # the first time by a probe

    async def embed(
        self, texts: Sequence[str], *, input_type: InputType = "document"
    ) -> Embeddings:
        """See Encoder."""
        self.asked_at_s.append(time.perf_counter())
        embedded = await self._encoder.embed(texts, input_type=input_type)
        self.texts.extend(texts)
        self.tokens += embedded.tokens
        return embedded

    async def fingerprint(self) -> str:
        """See Encoder."""
        return await self._encoder.fingerprint()


def measure(options: Options) -> list[str]:
    """Tokens per second of both, in turns; the ratio of each round's own two rates."""
    return asyncio.run(_measure(options))


async def _measure(options: Options) -> list[str]:
    encoder = await LocalEncoder.open(settings())
    rounds = [await _round(encoder, options, number) for number in range(options.rounds)]
    await encoder.aclose()
    whole, steady, bulk = zip(*rounds, strict=True)
    rows = [
        [name, f"{max(found):,.0f}", f"{median(found):,.0f}", f"{_share(found, bulk):.2f}"]
        for name, found in (
            ("files to store", whole),
            ("the same from the first batch on", steady),
            ("encoder alone", bulk),
        )
    ]
    return table(["way", "tokens/s, best", "median", "share of the encoder's"], rows)


def _share(found: Sequence[float], bulk: Sequence[float]) -> float:
    return median(mine / alone for mine, alone in zip(found, bulk, strict=True))


async def _round(encoder: LocalEncoder, options: Options, number: int) -> tuple[float, ...]:
    with tempfile.TemporaryDirectory() as folder:
        files = _write(Path(folder, "files"), options.chunks, 1000 * number)
        recorder = Recorder(encoder)
        seconds = await _ingest(recorder, files, Path(folder, "home"))
    started = time.perf_counter()
    await encoder.embed(recorder.texts)
    alone_s = time.perf_counter() - started
    return tuple(recorder.tokens / one for one in (*seconds, alone_s))


def _write(files: Path, chunks: int, seed: int) -> Path:
    files.mkdir()
    for index in range(chunks // (_PAGES_OF_A_DOCUMENT * _CHUNKS_OF_A_PAGE)):
        (files / f"{index}.pdf").write_bytes(simple_pdf(seed + index, _PAGES_OF_A_DOCUMENT))
    return files


async def _ingest(recorder: Recorder, files: Path, home: Path) -> tuple[float, float]:
    """Seconds of a run, and from its first batch on. The database runs already, no parser does."""

    async def open_encoder() -> Recorder:
        return recorder

    workers = available_cpus()
    database = await Database.open(settings(home=home))
    try:
        store = PostgresStore(database)
        parts = open_parts(settings(), store, database, open_encoder, workers)
        report = await Ingestion(parts, workers, Silent()).run([files], CorpusKey("b", "b"))
        ended_s = time.perf_counter()
    finally:
        await database.aclose()
    assert report.status == "completed", report.errors
    return report.seconds, ended_s - recorder.asked_at_s[1]
