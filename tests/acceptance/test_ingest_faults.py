"""What runs do when the encoder, the database or a parser fails under them."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from retrieval.stores.embedded import EmbeddedServer
from tests.acceptance.ingest_runs import CORPUS, Contents, Runs, wait_for_line, write_documents

DOCUMENTS, PAGES = 5, 3
SLOW = {"READ_PAGE_S": "0.1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_documents(
        tmp_path_factory.mktemp("source") / "docs", documents=DOCUMENTS, pages=PAGES
    )


@pytest.fixture(scope="module")
def calm(shared_runs: Runs, folder: Path) -> Contents:
    """What an undisturbed run leaves."""
    shared_runs.forget()
    assert shared_runs.ingest(folder)[0] == 0
    contents = shared_runs.contents()
    assert len(contents.points) == 2 * DOCUMENTS
    shared_runs.forget()
    return contents


def ingesting(folder: Path) -> tuple[str, ...]:
    return ("ingest", str(folder), "--corpus", CORPUS, "--workers", "1")


def test_an_encoder_that_comes_back_is_waited_for(runs: Runs, folder: Path, calm: Contents) -> None:
    """Behaviour 28."""
    with runs.started(*ingesting(folder), **SLOW) as process:
        wait_for_line(process, "[1/")
        runs.encoder.down()
        time.sleep(3)
        runs.encoder.up()
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, output + errors
    runs.contents().assert_equal(calm)


def test_an_encoder_that_stays_down_stops_the_run_and_nothing_is_read_again(
    runs: Runs, folder: Path, calm: Contents
) -> None:
    """Behaviours 21, 25 and 28."""
    with runs.started(*ingesting(folder), RAGPLANE_PATIENCE_S="3", **SLOW) as process:
        wait_for_line(process, "[1/")
        runs.encoder.down()
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert output.startswith("failed: corpus 'pumps'"), output
    assert f"error: embed: UnavailableError: ConnectError {runs.encoder.url}" in errors
    assert runs.rows("select status from ragplane.ledger_runs") == [("failed",)]
    stored = len(runs.rows("select id from ragplane.documents"))
    assert 1 <= stored < 2 * DOCUMENTS
    kept = runs.finished()
    assert len({name for name, _ in kept}) > stored / 2  # more was parsed than could be stored

    runs.encoder.up()
    runs.reads()
    assert runs.ingest(folder)[0] == 0
    assert not runs.reads().keys() & kept
    runs.contents().assert_equal(calm)


def test_a_database_that_restarts_is_waited_for(runs: Runs, folder: Path, calm: Contents) -> None:
    """Behaviours 19 and 20."""
    with runs.started(*ingesting(folder), **SLOW) as process:
        wait_for_line(process, "[1/")
        cut_off(runs)
        wait_for_line(process, "[3/")
        restart(runs)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, output + errors
    assert "waiting" in output + errors  # it noticed
    runs.contents().assert_equal(calm)


def cut_off(runs: Runs) -> None:
    """End every connection of the runs in mid-work."""
    query = "select pg_terminate_backend(pid) from pg_stat_activity \
        where application_name = 'ragplane'"
    assert runs.rows(query)


def restart(runs: Runs) -> None:
    """Stop the server at once, without a word to its clients; start it a second later."""
    folder = runs.home / "postgres"
    postmaster = psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))
    postmaster.kill()
    postmaster.wait(30)
    time.sleep(1)
    # The runs hold it by their own names; this one is the module's.
    EmbeddedServer(folder).start()


def test_two_processes_share_the_work_and_do_nothing_twice(
    runs: Runs, folder: Path, calm: Contents
) -> None:
    """Behaviours 19 and 20."""
    terms = {"RAGPLANE_LEASE_S": "60", "READ_PAGE_S": "1"}
    worker = ("worker", "--until-idle", "--workers", "1", "--json")
    with runs.started(*ingesting(folder), "--json", **terms) as first:
        while not runs.log.exists():  # it has queued all and reads the first
            assert first.poll() is None, first.communicate()
            time.sleep(0.05)
        with runs.started(*worker, **terms) as second:
            theirs, _ = second.communicate(timeout=120)
        ours, errors = first.communicate(timeout=120)
    assert (first.returncode, second.returncode) == (0, 0), errors
    done = json.loads(ours)["documents"]["added"], json.loads(theirs)["read"]
    assert min(done) > 0
    assert sum(done) == 2 * DOCUMENTS
    assert set(runs.reads().values()) == {1}
    runs.contents().assert_equal(calm)


def test_parsers_that_crash_spin_or_eat_memory_cost_their_document_only(
    runs: Runs, tmp_path: Path
) -> None:
    """Behaviours 25 and 26."""
    for name in ("crash", "good", "greedy", "other", "spin"):
        (tmp_path / f"{name}.md").write_text(f"The {name} pump.")
    code, report = runs.ingest(
        tmp_path, RAGPLANE_DOCUMENT_TIMEOUT_S="15", RAGPLANE_DOCUMENT_MEMORY_MB="700"
    )
    assert (code, report["status"]) == (3, "completed_with_errors")
    assert Counter(report["documents"]) == Counter(added=2, failed=3)
    causes = {error["document"].rpartition("/")[2]: error["cause"] for error in report["errors"]}
    assert causes == {
        "crash.md": "the parser process died (SIGSEGV)",
        "greedy.md": "took more than 700 MiB of memory",
        "spin.md": "took longer than 15 s",
    }
    assert report["stages"] == {"parse": 3}
    sources = runs.rows("select source from ragplane.documents order by source")
    assert [source.rpartition("/")[2] for (source,) in sources] == ["good.md", "other.md"]
