"""One model on each backend that could run it: how near to float32, how fast.

Runs in a process of its own (`python -m serve.backends.trial`): libraries that are not chosen cost
no memory, and one that crashes on this host costs nothing but its own trial.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import structlog

from ragplane.core.errors import ModelError, describe
from ragplane.core.models import ModelFiles, read_model
from serve.backends.base import Backend, ModelInput
from serve.backends.calibration import random_inputs
from serve.backends.factory import Candidate, build
from serve.backends.parity import parity

_TIMEOUT_S = 300
_PASSES = 4
_LENGTHS = (256, 256, 192, 160, 160, 128, 128, 128, 96, 96, 64, 64, 32, 32, 16, 8)
_REFERENCE = Candidate("onnxruntime", "float32")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Trial:
    """What one candidate did. `parity` is None for float32, which others are compared to."""

    candidate: Candidate
    tokens_per_s: float
    parity: float | None


def run_trials(
    spec: str, pooling: str | None, candidates: Sequence[Candidate], cache: Path, threads: int
) -> list[Trial]:
    """Try each candidate in a process of its own; those that fail are logged and left out."""
    trials: list[Trial] = []
    for candidate in candidates:
        arguments = [spec, pooling or "", candidate.backend, candidate.dtype, candidate.device]
        command = [sys.executable, "-m", __name__, *arguments, str(cache), str(threads)]
        try:
            run = subprocess.run(
                command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
            )
            speed, near = json.loads(run.stdout.splitlines()[-1])
            trials.append(Trial(candidate, speed, near))
        except (subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
            reason = _last_line(error) or describe(error)
            _log.warning("backend left out", model=spec, **asdict(candidate), reason=reason)
    return trials


def _last_line(error: Exception) -> str:
    lines = str(getattr(error, "stderr", None) or "").strip().splitlines()
    return lines[-1] if lines else ""


def try_candidate(files: ModelFiles, candidate: Candidate, cache: Path, threads: int) -> Trial:
    """Run the same inputs on the candidate and, unless it is float32, on the reference."""
    lengths = [min(length, files.max_tokens) for length in _LENGTHS]
    inputs = random_inputs(np.random.default_rng(1), files, lengths)
    backend = build(files, candidate, cache, threads)
    near = None
    if candidate.dtype != "float32":
        reference = build(files, _REFERENCE, cache, threads)
        near = parity(files, backend.forward(inputs), reference.forward(inputs))
        del reference
    seconds = min(_timed(backend, inputs) for _ in range(_PASSES))
    return Trial(candidate, sum(lengths) / seconds, near)


def _timed(backend: Backend, inputs: Sequence[ModelInput]) -> float:
    started_s = time.perf_counter()
    half = len(inputs) // 2
    backend.forward(inputs[:half])
    backend.forward(inputs[half:])
    return time.perf_counter() - started_s


def _main(spec: str, pooling: str, backend: str, dtype: str, device: str, *rest: str) -> None:
    cache, threads = rest
    files = read_model(spec, pooling=pooling or None)  # type: ignore[arg-type]
    candidate = Candidate(backend, dtype, device)  # type: ignore[arg-type]
    try:
        trial = try_candidate(files, candidate, Path(cache), int(threads))
    except ModelError as error:
        raise SystemExit(str(error)) from error
    print(json.dumps([trial.tokens_per_s, trial.parity]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
