"""The first start with a model, which exports it, when it is told to end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.integration.serve.server_process import CLI, started


def test_sigterm_while_exporting_leaves_nothing(tmp_path: Path) -> None:
    with started(tmp_path, *CLI) as server:
        _wait(lambda: any(tmp_path.glob("models/*.tmp*/plain")))
        exports = psutil.Process(server.process.pid).children(recursive=True)
        assert exports
        assert server.end() == (0, "")
    _wait(lambda: not any(tmp_path.glob("models/*.tmp*")))
    _wait(lambda: not any(export.is_running() for export in exports))


def _wait(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not is_so():
        if time.monotonic() > deadline_s:
            pytest.fail("it never came to that")
        time.sleep(0.05)
