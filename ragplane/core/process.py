"""Modules run in a process of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import NoReturn

from ragplane.core.errors import ModelError, UnavailableError

_GRACE_S = 5
_ENDED = (-signal.SIGTERM, 128 + signal.SIGTERM)
_groups: set[int] = set()


def run_module(module: str, *arguments: str, timeout_s: float) -> str:
    """What `python -m module arguments` writes to stdout. Code of the current folder is not run.

    It gets a process group of its own, which is ended (SIGTERM, SIGKILL 5 s later) after
    `timeout_s`. Raises ModelError if it cannot be started, takes longer or fails, with its last
    line, and UnavailableError if it was told to end (`end_running`).
    """
    command = [sys.executable, "-P", "-m", module, *arguments]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        raise ModelError(f"{module} cannot be started: {error}") from error
    _groups.add(process.pid)
    with process:
        try:
            output, said = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise ModelError(f"took over {timeout_s:.0f} s") from error
        finally:
            _groups.discard(process.pid)
    if process.returncode in _ENDED:
        raise UnavailableError(f"{module} was ended")
    if process.returncode != 0:
        lines = said.strip().splitlines() or [f"exit status {process.returncode}"]
        raise ModelError(lines[-1])
    return output


def end_running() -> None:
    """Tell all that `run_module` runs now to end; it does not wait for that."""
    for group in tuple(_groups):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGTERM)


def leave() -> NoReturn:
    """End this process now, with 0: a thread that downloads could take minutes."""
    end_running()  # an export removes its scratch files
    os._exit(0)


def _end(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
