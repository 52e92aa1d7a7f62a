"""One model on each backend that could run it: how near to float32, how fast.

Runs in a process of its own (`python -m serve.backends.trial`): libraries that are not chosen cost
no memory, and one that crashes on this host costs nothing but its own trial.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
import structlog

from ragplane.core.config import BackendName, Device, DtypeName, PoolingName
from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles, read_model
from ragplane.core.process import run_module
from serve.backends.base import Backend, ModelInput
from serve.backends.calibration import random_inputs
from serve.backends.factory import Candidate, build, build_reference
from serve.backends.parity import parity

_PASSES, _PASSES_S = 12, 5.0
_LENGTHS = (256, 256, 192, 160, 160, 128, 128, 128, 96, 96, 64, 64, 32, 32, 16, 8)
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Trial:
    """What one candidate did. `parity` is None for float32, which others are compared to."""

    candidate: Candidate
    tokens_per_s: float
    parity: float | None


def run_trial(
    spec: str,
    pooling: PoolingName | None,
    candidate: Candidate,
    graph: Path | None,
    cache: Path,
    *,
    threads: int,
    timeout_s: float,
) -> Trial | None:
    """Try a candidate in a process of its own; None if it fails, which is logged, or
    lacks its graph."""
    if candidate.needs_graph and graph is None:
        return None
    arguments = [spec, pooling or "", candidate.backend, candidate.dtype, candidate.device]
    try:
        output = run_module(
            __name__, *arguments, str(graph or ""), str(threads), str(cache), timeout_s=timeout_s
        )
        speed, near = json.loads(output.splitlines()[-1])
    except (ModelError, ValueError, LookupError, TypeError) as error:
        _log.warning("backend left out", model=spec, **asdict(candidate), reason=str(error))
        return None
    return Trial(candidate, speed, near)


def try_candidate(
    files: ModelFiles, candidate: Candidate, graph: Path | None, threads: int, cache: Path
) -> Trial:
    """Run the same inputs on the candidate and, unless it is float32, on the reference."""
    lengths = [min(length, files.max_tokens) for length in _LENGTHS]
    inputs = random_inputs(np.random.default_rng(1), files, lengths)
    backend = build(files, candidate, graph, threads, cache)
    near = None
    if candidate.dtype != "float32":
        reference = build_reference(files, graph, threads)
        near = parity(files, backend.forward(inputs), reference.forward(inputs))
        del reference
    return Trial(candidate, sum(lengths) / _best_s(backend, inputs), near)


def _best_s(backend: Backend, inputs: Sequence[ModelInput]) -> float:
    """Seconds of the fastest of a few passes, in two batches."""
    started_s, half = time.perf_counter(), len(inputs) // 2
    best_s = float("inf")
    for _ in range(_PASSES):
        best_s = min(best_s, _pass_s(backend, inputs[:half], inputs[half:]))
        if time.perf_counter() - started_s > _PASSES_S:
            break
    return best_s


def _pass_s(backend: Backend, *batches: Sequence[ModelInput]) -> float:
    started_s = time.perf_counter()
    with ThreadPoolExecutor(backend.streams) as pool:
        list(pool.map(backend.forward, batches))
    return time.perf_counter() - started_s


def _main(spec: str, pooling: str, backend: str, dtype: str, device: str, *rest: str) -> None:
    graph, threads, cache = rest
    file = Path(graph) if graph else None
    files = read_model(spec, pooling=cast(PoolingName, pooling) if pooling else None)
    candidate = Candidate(cast(BackendName, backend), cast(DtypeName, dtype), cast(Device, device))
    try:
        trial = try_candidate(files, candidate, file, int(threads), Path(cache))
    except ModelError as error:
        raise SystemExit(str(error)) from error
    print(json.dumps([trial.tokens_per_s, trial.parity]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
