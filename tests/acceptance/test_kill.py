"""kill -9 in the middle of a run, then a run again: the store equals that of an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from retrieval.stores.embedded import EmbeddedServer
from tests.conftest import make_home

DOCUMENTS = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(DOCUMENTS):
        text = f"# Pump {number}\n\nPump {number} stands in cellar {number % 7} and is serviced."
        (folder / f"{number:02}.md").write_text(text)
    return folder


def start(home: Path, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ragplane.cli", "ingest", str(folder), "--corpus", "pumps"],
        env={**os.environ, "RAGPLANE_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(home: Path, folder: Path) -> None:
    process = start(home, folder)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


def kill_after(home: Path, folder: Path, documents: int) -> None:
    """Kill the run once it has said that this many documents are done."""
    process = start(home, folder)
    assert process.stderr is not None
    with process.stderr:
        for line in process.stderr:
            if line.startswith(f"[{documents}/"):
                break
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=30) == -signal.SIGKILL


def contents(home: Path) -> list[tuple[object, ...]]:
    """Ids, texts and vectors of everything in the store."""
    server = EmbeddedServer(home / "postgres")
    with psycopg.connect(server.start()) as connection:
        chunks = connection.execute(
            "select id, ordinal, text, prefix, embedding::text from ragplane.chunks order by id"
        ).fetchall()
        documents = connection.execute(
            "select id, source, sha256, generation from ragplane.documents order by id"
        ).fetchall()
        postings = connection.execute(
            "select term, chunk_id, tf from ragplane.postings order by term, chunk_id"
        ).fetchall()
    server.stop()
    return [*chunks, *documents, *postings]


def test_killed_runs_lose_and_double_nothing(
    tmp_path: Path, folder: Path, model_home: Path
) -> None:
    calm = make_home(tmp_path / "calm", model_home)
    finish(calm, folder)
    stormy = make_home(tmp_path / "stormy", model_home)
    for documents in (1, 5, 9):
        kill_after(stormy, folder, documents)
    finish(stormy, folder)
    expected = contents(calm)
    assert len(expected) > 2 * DOCUMENTS
    assert contents(stormy) == expected
