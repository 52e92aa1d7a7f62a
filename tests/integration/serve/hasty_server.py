"""A server for tests: a pass of two seconds is stuck, and is ended half a second later."""

from __future__ import annotations

import sys
import time
from functools import partial

import serve.loaded_model
from ragplane.core.config import load_settings
from serve.backends.apart import ProcessBackend
from serve.batching.batcher import Batcher
from serve.server import run

_interrupt = ProcessBackend.interrupt


def _interrupt_late(backend: ProcessBackend, after_s: float) -> None:
    """Not before those who ask for /health have seen it."""
    time.sleep(0.5)
    _interrupt(backend, after_s)


if __name__ == "__main__":
    serve.loaded_model.Batcher = partial(Batcher, stuck_after_s=2.0)
    ProcessBackend.interrupt = _interrupt_late
    sys.exit(run(load_settings(), host="127.0.0.1", port=0))
