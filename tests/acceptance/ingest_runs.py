"""Real runs of the command line over one home, and what they leave in the database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pymupdf
from numpy.typing import NDArray

from tests.acceptance.encoder_server import EncoderServer

ROOT = Path(__file__).parents[2]
HOOKS = Path(__file__).parent / "hooks"
CORPUS = "pumps"
Read = tuple[str, int]
_POINTS = """
select c.id, d.source, c.ordinal, c.prefix, c.text, v.embedding::text
from ragplane.chunks c
join ragplane.documents d on d.id = c.document_id
join ragplane.corpora o on o.id = c.corpus_id
left join ragplane.vectors v on v.chunk_id = c.id and v.slot = o.slot
order by c.id
"""
_DOCUMENTS = (
    "select id, source, sha256, mime, title, generation from ragplane.documents order by id"
)
_POSTINGS = "select term, chunk_id, tf from ragplane.postings order by term, chunk_id"
_STATES = "select source, status, generation, stored_generation, chunk_ids from \
ragplane.ledger_documents order by source"
_FINISHED = """
select d.source, p.number from ragplane.ledger_pages p
join ragplane.ledger_documents d on d.id = p.document_id
where p.payload is not null and p.error is null
"""
_TABLES = (
    "corpora",
    "ledger_documents",
    "ledger_pages",
    "ledger_moves",
    "ledger_vectors",
    "ledger_runs",
)


@dataclass(frozen=True, slots=True)
class Contents:
    """All that a store holds, in order; `vectors` are those of the points, by row."""

    points: list[tuple[Any, ...]]
    vectors: NDArray[np.float32]
    others: list[tuple[Any, ...]]

    def assert_equal(self, other: Contents) -> None:
        """Ids, texts, documents and postings are the same, vectors within 1e-6."""
        assert self.points == other.points
        assert self.others == other.others
        assert np.abs(self.vectors - other.vectors).max() < 1e-6


@dataclass(slots=True)
class Runs:
    """Starts processes over the home; `conninfo` leads into their database."""

    home: Path
    conninfo: str
    encoder: EncoderServer

    @property
    def log(self) -> Path:
        """Where parser processes note the pages that they read."""
        return self.home / "read.log"

    @contextmanager
    def started(self, *arguments: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
        """`ragplane ARGUMENTS` in a process of its own, killed at the end."""
        own = {
            "RAGPLANE_HOME": str(self.home),
            "RAGPLANE_ENCODER_URL": self.encoder.url,
            "RAGPLANE_LEASE_S": "1",
            "PYTHONPATH": os.pathsep.join((str(HOOKS), str(ROOT))),
            "READ_LOG": str(self.log),
        }
        with subprocess.Popen(
            [sys.executable, "-m", "ragplane.cli", *arguments],
            cwd=ROOT,
            env=os.environ | own | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def ingest(self, folder: Path, **settings: str) -> tuple[int, dict[str, Any]]:
        """A whole run: its exit code and its report."""
        arguments = ("ingest", str(folder), "--corpus", CORPUS, "--json")
        with self.started(*arguments, **settings) as process:
            output, errors = process.communicate(timeout=120)
        assert output, errors
        return process.returncode, json.loads(output)

    def reads(self) -> Counter[Read]:
        """How often each page was read since the last call."""
        if not self.log.exists():
            return Counter()
        lines = self.log.read_text().splitlines()
        self.log.unlink()
        return Counter(
            (name, int(number)) for name, _, number in (x.rpartition(" ") for x in lines)
        )

    def finished(self) -> set[Read]:
        """Pages that the ledger keeps."""
        return {(source.rpartition("/")[2], number) for source, number in self.rows(_FINISHED)}

    def contents(self) -> Contents:
        """What the store and the ledger's manifest hold."""
        points = self.rows(_POINTS)
        vectors = np.array([json.loads(point[-1]) for point in points], np.float32)
        others = self.rows(_DOCUMENTS) + self.rows(_POSTINGS) + self.rows(_STATES)
        return Contents([point[:-1] for point in points], vectors, others)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    def forget(self) -> None:
        """Empty the database."""
        tables = ", ".join(f"ragplane.{table}" for table in _TABLES)
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(f"truncate {tables} cascade".encode())
        self.reads()


def wait_for_line(process: subprocess.Popen[str], start: str) -> None:
    """Wait until the process says a line on stderr that begins so."""
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line)
        if line.startswith(start):
            return
    raise AssertionError("".join(said))


def write_documents(folder: Path, *, documents: int, pages: int) -> Path:
    """As many PDF files, each of so many pages of text, and as many small Markdown files."""
    folder.mkdir()
    for number in range(documents):
        text = f"# Valve {number}\n\nValve {number} stands in cellar {number % 7} and is shut."
        (folder / f"valve{number:02}.md").write_text(text)
        with pymupdf.open() as document:
            for page in range(pages):
                text = (
                    f"Pump {number} has a part {page + 1} that is serviced every {page + 3} days."
                )
                document.new_page().insert_text((72, 72), text)
            document.save(folder / f"pump{number:02}.pdf")
    return folder
