"""The backend for a model: the fastest of those that are exact enough, found out once."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import structlog
from filelock import FileLock

from ragplane.core.config import Settings
from ragplane.core.cpu import available_cpus, cpu_model, memory_bytes
from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles
from serve.backends.calibration import calibrate
from serve.backends.factory import Candidate, build, candidates
from serve.backends.opened import OpenedBackend
from serve.backends.parity import passes
from serve.backends.trial import Trial, run_trials
from serve.batching.cost import Speed

_MEMORY_SHARE = 0.25
_LIBRARIES = ("torch", "openvino", "onnxruntime")
_log = structlog.get_logger()


def open_backend(spec: str, files: ModelFiles, settings: Settings) -> OpenedBackend:
    """Choose, open and calibrate. The choice is kept in `home` for this host and these versions.

    Raises ModelError, and ConfigError if the settings leave no backend.
    """
    cache = settings.home_path / "models"
    threads = settings.threads or available_cpus()
    trial = chosen(spec, files, settings, cache, threads)
    backend = build(files, trial.candidate, cache, threads)
    measured = calibrate(backend, files, settings.warm_up_s / 4)
    limit = min(settings.max_batch_tokens, _memory_tokens(files))
    micro = settings.micro_batch_tokens or measured.micro_batch_tokens(limit)
    opened = OpenedBackend(
        backend,
        cost=measured.cost(packed=backend.packed),
        speed=Speed(measured.tokens_per_s),
        micro_batch_tokens=min(micro, limit),
        parity=trial.parity,
    )
    _log.info(
        "backend opened",
        model=files.name,
        backend=backend.name,
        dtype=backend.dtype,
        parity=trial.parity,
        tokens_per_s=round(measured.tokens_per_s),
        micro_batch_tokens=opened.micro_batch_tokens,
    )
    return opened


def chosen(spec: str, files: ModelFiles, settings: Settings, cache: Path, threads: int) -> Trial:
    """The trial of the backend to use. Nothing is tried where only float32 on one is possible."""
    groups = candidates(settings, files)
    if len(groups) == 1 and len(groups[0]) == 1 and groups[0][0].dtype == "float32":
        return Trial(groups[0][0], 0.0, None)
    record = cache / f"{files.name}-{_key(files, groups, threads)}.choice.json"
    if (known := _read(record)) is not None:
        return known
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{record}.lock"):
        if (known := _read(record)) is not None:
            return known
        best = _best(spec, files, settings, groups, threads)
        _write(record, best)
        return best


def fastest(trials: Sequence[Trial], files: ModelFiles) -> Trial | None:
    """The fastest of those that pass the parity gate; None if none does."""
    exact = [trial for trial in trials if passes(files.task, trial.parity)]
    return max(exact, key=lambda trial: trial.tokens_per_s, default=None)


def _best(
    spec: str,
    files: ModelFiles,
    settings: Settings,
    groups: Sequence[Sequence[Candidate]],
    threads: int,
) -> Trial:
    tried: list[Trial] = []
    for group in groups:
        trials = run_trials(spec, settings.pooling, group, settings.home_path / "models", threads)
        tried += trials
        if (best := fastest(trials, files)) is not None:
            return best
    pinned = max(tried, key=lambda trial: trial.parity or 0.0, default=None)
    if pinned is None:
        raise ModelError(f"model {files.name}: no backend could run it")
    _log.warning("the pinned precision fails the parity gate", model=spec, parity=pinned.parity)
    return pinned


def _key(files: ModelFiles, groups: Sequence[Sequence[Candidate]], threads: int) -> str:
    facts = [
        files.weights_sha256(),
        [[asdict(candidate) for candidate in group] for group in groups],
        threads,
        cpu_model(),
        [_version(name) for name in _LIBRARIES],
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _read(record: Path) -> Trial | None:
    """The kept trial; a record that cannot be read is made anew."""
    try:
        value = json.loads(record.read_text(encoding="utf-8"))
        return Trial(Candidate(**value.pop("candidate")), **value)
    except (OSError, ValueError, TypeError, LookupError):
        return None


def _write(record: Path, trial: Trial) -> None:
    scratch = record.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(asdict(trial)), encoding="utf-8")
    scratch.replace(record)


def _memory_tokens(files: ModelFiles) -> int:
    """Tokens whose activations fit a share of the memory, at least one longest input's.

    A token costs its hidden state and the four times wider one of the feed-forward layer, float32,
    a few times over, and a row of attention scores in each head.
    """
    token_bytes = 4 * (16 * files.hidden_size + 16 * files.max_tokens)
    return max(files.max_tokens, int(_MEMORY_SHARE * memory_bytes() / token_bytes))
