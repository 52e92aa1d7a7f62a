"""The way into PyTorch: the packed forward pass where a model has one, the padded one elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from ragplane.core.errors import ModelError
from ragplane.core.model_modules import read_json
from ragplane.core.models import ModelFiles
from serve.backends.base import Backend


def open_torch(files: ModelFiles, *, dtype: str, threads: int, device: str, cache: Path) -> Backend:
    """Load `files` in `dtype` (float32, bfloat16, float16) on `device` (cpu, cuda). What is
    compiled for this host is kept below `cache`.

    Raises ModelError.
    """
    # Idle OpenMP workers would spin on the CPUs that tokenising and the event loop need: on two
    # CPUs with busy neighbours a short forward pass took 20 times as long. OpenMP reads this once,
    # when PyTorch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Compiled kernels are kept by shape, up to a megabyte each, and the default is 1,024 of them.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "512")
    import torch

    from serve.backends.bert_files import bert_facts

    if device == "cuda" and not torch.cuda.is_available():
        raise ModelError("device cuda: PyTorch finds no GPU here")
    facts = bert_facts(read_json(files.folder / "config.json", dict))
    if facts is not None:
        from serve.backends.torch_packed import PackedTorchBackend

        torch.set_num_threads(1)  # OpenMP's threads, once there are any, survive no fork
        return PackedTorchBackend(
            files, facts, dtype=dtype, threads=threads, device=device, cache=cache
        )
    from serve.backends.torch_padded import PaddedTorchBackend

    torch.set_num_threads(threads)
    return PaddedTorchBackend(files, dtype=dtype, device=device)
