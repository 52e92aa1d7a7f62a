"""Modules in processes of their own: what they say, how they fail, that none is left behind."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from ragplane.core.errors import ModelError, UnavailableError
from ragplane.core.process import end_running, run_module

CHILD = """
import signal, subprocess, sys
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[2], "w").write(str(sleeper.pid))
sleeper.wait()
"""


def test_output_and_arguments() -> None:
    assert run_module("calendar", "2024", "2", timeout_s=30).strip().startswith("February 2024")


def test_code_of_the_current_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "calendar.py").write_text("print('intruder')")
    monkeypatch.chdir(tmp_path)
    assert "intruder" not in run_module("calendar", "2024", "2", timeout_s=30)


def test_failure_gives_the_last_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No module named no_such_module"):
        run_module("no_such_module", timeout_s=30)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with pytest.raises(ModelError, match="cannot be started"):
        run_module("calendar", timeout_s=30)


@pytest.mark.parametrize("manner", ["polite", "deaf"])
def test_a_process_that_takes_too_long_ends_with_its_children(
    manner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragplane.core.process._GRACE_S", 0.2)
    (tmp_path / "sleepy.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pid = tmp_path / "pid"
    with pytest.raises(ModelError, match="took over"):
        run_module("sleepy", manner, str(pid), timeout_s=2)
    deadline_s = time.monotonic() + 10
    while _runs(int(pid.read_text())) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not _runs(int(pid.read_text()))


def test_all_that_runs_can_be_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sleepy.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pid = tmp_path / "pid"
    with ThreadPoolExecutor() as pool:
        running = pool.submit(run_module, "sleepy", "polite", str(pid), timeout_s=60)
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.05)
        end_running()
        with pytest.raises(UnavailableError, match="sleepy was ended"):
            running.result(timeout=30)


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
