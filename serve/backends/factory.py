"""Which backends could run a model here, and how each is made."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from ragplane.core.config import BackendName, Device, DtypeName, Settings
from ragplane.core.cpu import has_bfloat16
from ragplane.core.errors import ConfigError, ModelError
from ragplane.core.models import ModelFiles
from ragplane.core.onnx_export import exported_graph
from serve.backends.base import Backend


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to run a model."""

    backend: BackendName
    dtype: DtypeName
    device: Device = "cpu"


def candidates(settings: Settings, files: ModelFiles) -> list[list[Candidate]]:
    """What may run `files` under these settings, in groups: a later group is for when nothing of
    the groups before it is exact enough. Raises ConfigError if nothing may."""
    wanted = [[*group] for group in _groups(settings.device)]
    if files.onnx is not None:
        wanted = [[c for c in group if c.backend != "torch"] for group in wanted]
    kept = [[c for c in group if _is_wanted(c, settings)] for group in wanted]
    groups = [group for group in kept if group]
    if not groups:
        raise ConfigError(
            f"backend {settings.backend} with dtype {settings.dtype} on {settings.device} "
            f"cannot run {files.name} here"
        )
    return groups


def build(files: ModelFiles, candidate: Candidate, cache: Path, threads: int) -> Backend:
    """Open a backend; exported graphs are kept in `cache`. Raises ModelError."""
    if candidate.backend == "torch":
        from serve.backends.torch_model import open_torch

        return open_torch(files, dtype=candidate.dtype, threads=threads, device=candidate.device)
    graph = exported_graph(files, cache)
    if candidate.backend == "openvino":
        from serve.backends.openvino import OpenVinoBackend

        return OpenVinoBackend(graph, files, dtype=candidate.dtype, threads=threads)
    if candidate.backend == "onnxruntime":
        from serve.backends.onnx import OnnxBackend

        return OnnxBackend(graph, files, threads=threads)
    raise ModelError(f"no backend {candidate.backend}")


def _groups(device: Device) -> list[list[Candidate]]:
    if device == "cuda":
        half = [Candidate("torch", "bfloat16", device), Candidate("torch", "float16", device)]
        return [half, [Candidate("torch", "float32", device)]]
    openvino = importlib.util.find_spec("openvino") is not None
    names: list[BackendName] = ["torch", *(["openvino"] if openvino else [])]  # type: ignore[list-item]
    half = [Candidate(name, "bfloat16") for name in names]
    full = [Candidate(name, "float32") for name in (*names, "onnxruntime")]
    # Where the CPU only emulates bfloat16 it is slower than float32.
    return [half, full] if has_bfloat16() else [full, half]


def _is_wanted(candidate: Candidate, settings: Settings) -> bool:
    return settings.backend in ("auto", candidate.backend) and settings.dtype in (
        "auto",
        candidate.dtype,
    )
