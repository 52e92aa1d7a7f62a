"""kill -9 at any moment of a run, then a run again: the store is that of an undisturbed run.

RAGPLANE_TEST_KILLS is the number of kills; a few by default, for each costs a start.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.acceptance.ingest_runs import CORPUS, Runs, write_documents

KILLS = int(os.environ.get("RAGPLANE_TEST_KILLS", "4"))
START_SHARE = 0.3  # of a run: before that it has not met the ledger
SLOW = {"READ_PAGE_S": "0.05"}


def killed(runs: Runs, folder: Path, after_s: float) -> bool:
    """Start a run and kill it; False if it was done by then."""
    arguments = ("ingest", str(folder), "--corpus", CORPUS, "--workers", "2")
    with runs.started(*arguments, **SLOW) as process:
        try:
            _, errors = process.communicate(timeout=after_s)
        except subprocess.TimeoutExpired:
            return True
    assert process.returncode == 0, errors
    return False


def storm(runs: Runs, folder: Path, moments_s: list[float]) -> None:
    """Kill runs at these moments, used up from the end, until one is done; else finish the last."""
    finished = runs.finished()
    while moments_s and killed(runs, folder, moments_s.pop()):
        assert not runs.reads().keys() & finished  # no finished page is read again
        assert runs.finished() >= finished
        finished = runs.finished()
    assert runs.ingest(folder)[0] == 0
    assert not runs.reads().keys() & finished


@pytest.mark.timeout(120 + 30 * KILLS)
def test_killed_runs_lose_and_double_nothing(runs: Runs, tmp_path: Path) -> None:
    """Behaviours 19, 20 and 21."""
    folder = write_documents(tmp_path / "docs", documents=8, pages=6)
    started_s = time.monotonic()
    assert runs.ingest(folder, **SLOW)[0] == 0
    run_s = time.monotonic() - started_s
    calm = runs.contents()
    assert (len(runs.finished()), len(calm.points)) == (8 * 6, 2 * 8)
    chance = random.Random(KILLS)
    moments_s = [chance.uniform(START_SHARE * run_s, run_s) for _ in range(KILLS)]
    while moments_s:
        runs.forget()
        storm(runs, folder, moments_s)
        runs.contents().assert_equal(calm)
