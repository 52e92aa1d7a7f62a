"""A run over many small documents that did not change.

The ledger is filled by its own methods with what a parser read, without vectors: an unchanged
document is never looked up in the store.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path
from statistics import median

from ingest.ledger.files import add_hashes, stat_files
from ingest.ledger.records import Claim
from ingest.parse import Parser
from ingest.parsed import ParseRequest
from ingest.sources import list_sources, path_of
from pipelines.ingestion.opening import open_parts
from pipelines.ingestion.parts import Parts
from pipelines.ingestion.run import Ingestion
from retrieval.stores.base import CorpusKey
from retrieval.stores.database import Database
from retrieval.stores.postgres import PostgresStore
from serve.fake import FakeEncoder
from tests.bench.ingest.corpora import write_texts
from tests.bench.ingest.options import Options, parser_spec, settings
from tests.bench.ingest.silent import Silent
from tests.bench.report import table

_KEY = CorpusKey("bench", "notes")
_LONG_AGO_S = 1_600_000_000  # a time that the ledger trusts
_LEASE_S = 3600.0
_AT_ONCE = 100


def measure(options: Options) -> list[str]:
    """Seconds of a run that finds nothing to do."""
    return asyncio.run(_measure(options))


async def _measure(options: Options) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        files = _write(Path(folder, "files"), options.documents)
        database = await Database.open(settings(home=Path(folder, "home")))
        try:
            parts = _parts(database)
            started = time.perf_counter()
            await _fill(parts, files)
            filled_s = time.perf_counter() - started
            seconds = [await _again(parts, files, options) for _ in range(options.rounds)]
        finally:
            await database.aclose()
    head = ["documents", "s, best", "median", "s to fill the ledger"]
    times = f"{min(seconds):.2f}", f"{median(seconds):.2f}", f"{filled_s:.0f}"
    return table(head, [[f"{options.documents:,}", *times]])


def _write(files: Path, count: int) -> Path:
    files.mkdir()
    write_texts(files, count)
    for path in files.rglob("*.txt"):
        os.utime(path, (_LONG_AGO_S, _LONG_AGO_S))
    return files


def _parts(database: Database) -> Parts:
    async def open_encoder() -> FakeEncoder:
        raise AssertionError("an unchanged corpus needs no encoder")

    return open_parts(settings(), PostgresStore(database), database, open_encoder, 1)


async def _fill(parts: Parts, files: Path) -> None:
    listing = await asyncio.to_thread(list_sources, [files])
    stats = stat_files(listing)
    hashed = add_hashes(stats, listing, list(listing.files))
    await parts.ledger.sync(_KEY, hashed, parts.parser.options.fingerprint())
    parser = Parser(parser_spec())
    while claims := await parts.ledger.claim(_KEY, "bench", lease_s=_LEASE_S, limit=_AT_ONCE):
        await asyncio.gather(*(_finish(parts, parser, claim) for claim in claims))


async def _finish(parts: Parts, parser: Parser, claim: Claim) -> None:
    path = path_of(claim.source)
    request = ParseRequest(
        path, claim.source, _KEY.tenant, _KEY.corpus, claim.document_id, claim.generation
    )
    await parts.ledger.finish_document(claim, parser.parse(request))


async def _again(parts: Parts, files: Path, options: Options) -> float:
    report = await Ingestion(parts, 1, Silent()).run([files], _KEY)
    assert report.documents["unchanged"] == options.documents, report.as_json()
    return report.seconds
