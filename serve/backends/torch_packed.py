"""Models of the BERT block family on PyTorch, inputs packed.

On the CPU, bfloat16 wants a processor with AVX512-BF16 or AMX. On CUDA the same code runs with
PyTorch's own linear layers; that path is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles
from serve.backends.base import ModelInput
from serve.backends.bert_files import BertFacts, Weights
from serve.backends.packed_bert import PackedBert, pack
from serve.backends.packed_heads import make_head
from serve.encoder import Vectors


class PackedTorchBackend:
    """One encoder and its head, without padding."""

    name = "torch"
    packed = True

    def __init__(self, files: ModelFiles, facts: BertFacts, *, dtype: str, device: str) -> None:
        """Read the weights and lay them out. Raises ModelError."""
        self.dtype = dtype
        self._device = device
        self._torch_dtype: torch.dtype = getattr(torch, dtype)
        self._facts = facts
        weights = Weights(files.folder, facts.names.prefix)
        with torch.inference_mode():
            encoder = PackedBert(weights, facts, self._torch_dtype, device)
            self._head = make_head(files, encoder, weights, self._torch_dtype, device)

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        """As `Backend.forward`. The arrays of one call may share memory."""
        order = sorted(range(len(inputs)), key=lambda index: len(inputs[index].ids))
        try:
            rows = self._run([inputs[index] for index in order])
        except (RuntimeError, IndexError, MemoryError) as error:
            raise ModelError(f"forward pass of {len(inputs)} inputs: {error}") from error
        results = [rows[0]] * len(rows)
        for index, row in zip(order, rows, strict=True):
            results[index] = row
        return results

    def _run(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        with torch.inference_mode():
            packed = pack(inputs, self._facts, self._torch_dtype, self._device)
            tensors = self._head(packed, [len(item.ids) for item in inputs])
            return [np.asarray(tensor.cpu().numpy(), np.float32) for tensor in tensors]
