"""A server for tests that loads and infers only while no file lies at the path in HOLD."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import serve.loading
from ragplane.core.config import load_settings
from serve.backends.apart import ProcessBackend
from serve.server import run

P = ParamSpec("P")
T = TypeVar("T")


def held(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, which first waits until the file is gone."""

    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        while Path(os.environ["HOLD"]).exists():
            time.sleep(0.01)
        return function(*args, **kwargs)

    return wait


if __name__ == "__main__":
    serve.loading.open_backend = held(serve.loading.open_backend)
    ProcessBackend.forward = held(ProcessBackend.forward)
    sys.exit(run(load_settings(), host="127.0.0.1", port=0))
