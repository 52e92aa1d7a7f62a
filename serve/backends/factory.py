"""Which backends could run a model here, and how each is made."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragplane.core.cpu import has_bfloat16
from ragplane.core.errors import ConfigError, ModelError
from ragplane.core.models import ModelFiles
from serve.backends.base import Backend
from serve.backends.pooled import PoolingBackend

if TYPE_CHECKING:
    from ragplane.core.config import BackendName, Device, DtypeName, Settings


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to run a model."""

    backend: BackendName
    dtype: DtypeName
    device: Device = "cpu"

    @property
    def needs_graph(self) -> bool:
        """Whether it runs an exported graph."""
        return self.backend in ("openvino", "onnxruntime")


def candidates(settings: Settings, files: ModelFiles) -> list[list[Candidate]]:
    """What may run `files` under these settings, in groups: a later group is for when nothing of
    the groups before it is exact enough. Raises ConfigError if nothing may."""
    kept = [
        [candidate for candidate in group if _is_wanted(candidate, settings, files)]
        for group in _groups(settings.device)
    ]
    groups = [group for group in kept if group]
    if not groups:
        raise ConfigError(
            f"backend {settings.backend} with dtype {settings.dtype} on {settings.device} "
            f"cannot run {files.name} here"
        )
    return groups


def build(
    files: ModelFiles, candidate: Candidate, graph: Path | None, threads: int, cache: Path
) -> Backend:
    """Open a backend, on `graph` if it needs one. What it compiles for this host is kept in
    `cache`. Raises ModelError."""
    backend = _open(files, candidate, graph, threads, cache)
    return PoolingBackend(backend, files.pooling) if files.task == "states" else backend


def build_reference(files: ModelFiles, graph: Path | None, threads: int) -> Backend:
    """The float32 that others are compared to: an exported graph, or the transformers library.

    Raises ModelError.
    """
    if graph is not None:
        from serve.backends.onnx import OnnxBackend

        return OnnxBackend(graph, files, threads=threads)
    import torch

    from serve.backends.torch_padded import PaddedTorchBackend

    torch.set_num_threads(threads)
    return PaddedTorchBackend(files, dtype="float32", device="cpu")


def _open(
    files: ModelFiles, candidate: Candidate, graph: Path | None, threads: int, cache: Path
) -> Backend:
    if candidate.backend == "torch":
        from serve.backends.torch_model import open_torch

        return open_torch(
            files,
            dtype=candidate.dtype,
            threads=threads,
            device=candidate.device,
            cache=cache,
        )
    if graph is None:
        raise ModelError(f"model {files.name}: there is no graph for {candidate.backend}")
    if candidate.backend == "openvino":
        from serve.backends.openvino import OpenVinoBackend

        return OpenVinoBackend(graph, files, dtype=candidate.dtype, threads=threads)
    from serve.backends.onnx import OnnxBackend

    return OnnxBackend(graph, files, threads=threads)


def _groups(device: Device) -> list[list[Candidate]]:
    if device == "cuda":
        half = [Candidate("torch", "bfloat16", device), Candidate("torch", "float16", device)]
        return [half, [Candidate("torch", "float32", device)]]
    names: list[BackendName] = ["torch"]
    if importlib.util.find_spec("openvino") is not None:
        names.append("openvino")
    half = [Candidate(name, "bfloat16") for name in names]
    full = [Candidate(name, "float32") for name in (*names, "onnxruntime")]
    # Where the CPU only emulates bfloat16 it is slower than float32.
    return [half, full] if has_bfloat16() else [full, half]


def _is_wanted(candidate: Candidate, settings: Settings, files: ModelFiles) -> bool:
    return (
        settings.backend in ("auto", candidate.backend)
        and settings.dtype in ("auto", candidate.dtype)
        and (candidate.needs_graph or files.onnx is None)
    )
