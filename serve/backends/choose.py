"""The backend for a model: the fastest of those that are exact enough, found out once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import structlog

from ragplane.core.config import PoolingName, Settings
from ragplane.core.cpu import available_cpus
from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles, Task
from ragplane.core.onnx_export import exported_graph
from serve.backends.apart import ProcessBackend
from serve.backends.base import Backend, ModelInput
from serve.backends.calibration import calibrate
from serve.backends.factory import Candidate, build, candidates
from serve.backends.memory import fitting_tokens
from serve.backends.opened import OpenedBackend
from serve.backends.parity import passes
from serve.backends.record import Choice, ChoiceRecord
from serve.backends.trial import Trial, run_trial
from serve.batching.cost import Speed
from serve.pooling import require_finite

_TRIALS_S = 600.0
_log = structlog.get_logger()


def open_backend(
    spec: str,
    files: ModelFiles,
    settings: Settings,
    *,
    calibration_s: float,
    apart: bool = False,
) -> OpenedBackend:
    """Choose, open and calibrate, the last within `calibration_s` (0: not at all). The choice is
    kept in `home` for this host and these versions. `apart`: in a process of its own.

    Raises ModelError, and ConfigError if the settings leave no backend.
    """
    cache = settings.home_path / "models"
    threads = settings.threads or available_cpus()
    choice = choose(spec, files, settings, cache, threads)
    graph = exported_graph(files, cache) if choice.candidate.needs_graph else None
    backend: Backend = (
        ProcessBackend(
            files.root, pooling_of(spec, settings), choice.candidate, graph, threads, cache
        )
        if apart
        else build(files, choice.candidate, graph, threads, cache)
    )
    try:
        check(backend, files)
        started_s = time.perf_counter()
        measured = calibrate(backend, files, calibration_s)
        spent_s = time.perf_counter() - started_s
    except BaseException:
        backend.close()
        raise
    fitting = fitting_tokens(files, packed=backend.packed, device=choice.candidate.device)
    limit = min(settings.max_batch_tokens, fitting)
    micro = settings.micro_batch_tokens or measured.micro_batch_tokens(limit)
    return OpenedBackend(
        backend,
        cost=measured.cost(packed=backend.packed),
        speed=Speed(measured.tokens_per_s, measured.fixed_s),
        micro_batch_tokens=min(micro, limit),
        parity=choice.parity,
        calibration_s=spent_s,
    )


def pooling_of(spec: str, settings: Settings) -> PoolingName | None:
    """The pooling that the settings want of a model in place of its own: the embedding model's."""
    return settings.pooling if spec == settings.embed_model else None


def check(backend: Backend, files: ModelFiles) -> None:
    """Run one input that holds the last of the vocabulary.

    Raises ModelError if the weights are not as config.json says, or give NaN or infinity.
    """
    length = min(4, files.max_tokens)
    (output,) = backend.forward([ModelInput((files.vocabulary_size - 1,) * length)])
    wanted: dict[Task, tuple[int, ...]] = {
        "states": (length, files.hidden_size),
        "logits": (len(files.labels),),
        "sparse": (files.vocabulary_size,),
    }
    if output.shape != wanted[files.task]:
        message = f"the weights give {output.shape}, and config.json says {wanted[files.task]}"
        raise ModelError(message)
    require_finite(output)


def choose(spec: str, files: ModelFiles, settings: Settings, cache: Path, threads: int) -> Choice:
    """The backend to use. Nothing is tried where only float32 on one is possible."""
    groups = candidates(settings, files)
    if len(groups) == 1 and len(groups[0]) == 1 and groups[0][0].dtype == "float32":
        return Choice(groups[0][0], None)
    record = ChoiceRecord(files, groups, cache, threads)
    if (known := record.read()) is not None:
        return known
    with record.locked():
        if (known := record.read()) is not None:
            return known
        best = _best(spec, files, settings, groups, cache, threads)
        choice = Choice(best.candidate, best.parity)
        record.write(choice)
        return choice


def fastest(trials: Sequence[Trial], files: ModelFiles) -> Trial | None:
    """The fastest of those that pass the parity gate; None if none does."""
    exact = [trial for trial in trials if passes(files.task, trial.parity)]
    return max(exact, key=lambda trial: trial.tokens_per_s, default=None)


def _best(
    spec: str,
    files: ModelFiles,
    settings: Settings,
    groups: Sequence[Sequence[Candidate]],
    cache: Path,
    threads: int,
) -> Trial:
    left_s, left = _TRIALS_S, sum(len(group) for group in groups)
    tried: list[Trial] = []
    for group in groups:
        graph = _graph(files, group, cache)
        for candidate in group:
            started_s = time.monotonic()
            trial = run_trial(
                spec,
                pooling_of(spec, settings),
                candidate,
                graph,
                cache,
                threads=threads,
                timeout_s=left_s / left,
            )
            tried += [] if trial is None else [trial]
            left_s, left = left_s - (time.monotonic() - started_s), left - 1
        if (best := fastest(tried, files)) is not None:
            return best
    return _inexact(files, settings, tried)


def _graph(files: ModelFiles, group: Sequence[Candidate], cache: Path) -> Path | None:
    """The graph that some of the group need and the others are compared to."""
    if not any(candidate.needs_graph for candidate in group):
        return None
    try:
        return exported_graph(files, cache)
    except ModelError as error:
        _log.warning("export failed; only torch is tried", model=files.name, reason=str(error))
        return None


def _inexact(files: ModelFiles, settings: Settings, tried: Sequence[Trial]) -> Trial:
    """What to take when nothing passes the gate: the most exact, if its precision is pinned."""
    if not tried:
        raise ModelError(f"model {files.name}: no backend could run it")
    if settings.dtype == "auto":
        parities = ", ".join(
            f"{trial.candidate.backend} {trial.candidate.dtype} {trial.parity:.5f}"
            for trial in tried
        )
        raise ModelError(f"model {files.name}: no backend is exact enough; parity: {parities}")
    pinned = max(tried, key=lambda trial: trial.parity or 0.0)
    _log.warning(
        "the pinned precision fails the parity gate", model=files.name, parity=pinned.parity
    )
    return pinned
