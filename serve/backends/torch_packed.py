"""Models of the BERT block family on PyTorch, inputs packed.

On the CPU, bfloat16 wants a processor with AVX512-BF16 or AMX. On CUDA the same code runs with
PyTorch's own linear layers; that path is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles
from serve.backends.base import Backend, ModelInput
from serve.backends.bert_files import BertFacts, Weights
from serve.backends.ops import make_ops
from serve.backends.packed_bert import PackedBert
from serve.backends.packed_heads import make_head
from serve.encoder import Vectors

# A thread that gets fewer tokens than this waits for the others longer than it helps them.
_LEAST_TOKENS = 64


class PackedTorchBackend(Backend):
    """One encoder and its head, without padding.

    CPUs that share a product wait for each other after every one of them, some hundred times a
    pass. So two batches run at a time, each on half of the CPUs, and where a half is more than one
    CPU, its batch is split by inputs first.
    """

    name = "torch"
    packed = True

    def __init__(
        self,
        files: ModelFiles,
        facts: BertFacts,
        *,
        dtype: str,
        threads: int,
        device: str,
        cache: Path,
    ) -> None:
        """Read the weights and lay them out; kernels that are compiled are kept below `cache`.

        Raises ModelError.
        """
        self.dtype = dtype
        self.streams = min(2, threads) if device == "cpu" else 1
        self._threads = threads // self.streams
        self._pool = ThreadPoolExecutor(threads, "torch")
        weights = Weights(files.folder, facts.names.prefix)
        ops = make_ops(getattr(torch, dtype), device, cache)
        with torch.inference_mode():
            self._encoder = PackedBert(weights, facts, ops)
            self._head = make_head(files, self._encoder, weights, ops)

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        """As `Backend.forward`. The arrays of one call may share memory."""
        order = sorted(range(len(inputs)), key=lambda index: len(inputs[index].ids))
        ordered = [inputs[index] for index in order]
        parts = split([len(item.ids) for item in ordered], self._threads)
        try:
            rows = self._run_parts([ordered[part] for part in parts])
        except (RuntimeError, IndexError, MemoryError) as error:
            raise ModelError(f"forward pass of {len(inputs)} inputs: {error}") from error
        results = [rows[0]] * len(rows)
        for index, row in zip(order, rows, strict=True):
            results[index] = row
        return results

    def _run_parts(self, parts: Sequence[Sequence[ModelInput]]) -> list[Vectors]:
        threads = max(1, self._threads // len(parts))
        if len(parts) == 1:
            return self._run(parts[0], threads)
        running = [self._pool.submit(self._run, part, threads) for part in parts]
        return [row for part in running for row in part.result()]

    def _run(self, inputs: Sequence[ModelInput], threads: int) -> list[Vectors]:
        tokens = sum(len(item.ids) for item in inputs)
        torch.set_num_threads(max(1, min(threads, tokens // _LEAST_TOKENS)))  # of this thread
        with torch.inference_mode():
            tensors = self._head(self._encoder.pack(inputs), [len(item.ids) for item in inputs])
            return [np.asarray(tensor.cpu().numpy(), np.float32) for tensor in tensors]


def split(lengths: Sequence[int], parts: int) -> list[slice]:
    """Cut inputs into at most `parts` runs of about equally many tokens, none of them empty."""
    total = sum(lengths)
    parts = max(1, min(parts, len(lengths), total // _LEAST_TOKENS))
    stops: list[int] = []
    seen = 0
    for index, length in enumerate(lengths):
        seen += length
        left = len(lengths) - index - 1
        if len(stops) < parts - 1 and (
            seen >= total * (len(stops) + 1) / parts or left < parts - len(stops)
        ):
            stops.append(index + 1)
    bounds = [0, *(stop for stop in stops if stop < len(lengths)), len(lengths)]
    return [slice(start, stop) for start, stop in pairwise(bounds)]
