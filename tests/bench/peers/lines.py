"""Answer tasks that come as lines of JSON on stdin, one at a time. Needs the standard library only.

A task is `{"task": NAME, ...arguments}`; the answer is one line with what its function returned. It
goes to the file descriptor in BENCH_ANSWERS, since libraries print to stdout.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


def answer(tasks: Mapping[str, Callable[..., Mapping[str, Any]]]) -> None:
    """Say that we are ready, then serve until stdin ends."""
    with os.fdopen(int(os.environ["BENCH_ANSWERS"]), "w") as out:
        print("{}", file=out, flush=True)
        for line in sys.stdin:
            arguments = json.loads(line)
            result = tasks[arguments.pop("task")](**arguments)
            print(json.dumps(result), file=out, flush=True)
