"""The operations of `serve.backends.ops` by our own kernels, in bfloat16 on the CPU.

PyTorch passes over the same rows again and again: a sum, a norm and a rounding write each row three
times. Its attention does the softmax across registers and costs twice as much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from serve.backends.attention import Attend
from serve.backends.kernels.layout import (
    LANES,
    TILE_DEPTH,
    may_use_tiles,
    padded,
    scratch_offsets,
    whole_tiles,
)
from serve.backends.kernels.library import Kernels
from serve.backends.ops import Norm, Ops


class FusedOps(Ops):
    """`Ops` by kernels; what they do not take is left to PyTorch."""

    def __init__(self, kernels: Kernels) -> None:
        super().__init__(torch.bfloat16, "cpu")
        self._kernels = kernels
        self._uses_tiles = kernels.attend is not None and may_use_tiles()

    def attention(self, lengths: Sequence[int], heads: int, width: int) -> Attend:
        """As `Ops.attention`, on the matrix unit if the processor has one."""
        if not self._uses_tiles or width % TILE_DEPTH:
            return super().attention(lengths, heads, width)
        return _TileAttention(self._kernels, lengths, heads, width)

    def add_norm(self, rows: Tensor, product: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
        """As `Ops.add_norm`; the first result is `rows`, written over."""
        count, width = rows.shape
        if width % LANES:
            return super().add_norm(rows, product, norm)
        rounded = torch.empty_like(product)
        self._kernels.add_norm(
            _address(rows, torch.float32, count, width),
            _address(product, torch.bfloat16, count, width),
            _address(rounded, torch.bfloat16, count, width),
            _address(norm.weight, torch.float32, width),
            _address(norm.bias, torch.float32, width),
            count,
            width,
            norm.epsilon,
        )
        return rows, rounded


class _TileAttention:
    """Attention over inputs of `lengths`."""

    def __init__(self, kernels: Kernels, lengths: Sequence[int], heads: int, width: int) -> None:
        self._kernels = kernels
        self._lengths = torch.tensor(lengths)
        self._starts = self._lengths.cumsum(0) - self._lengths
        self._tokens = sum(lengths)
        self._shape = heads, width
        self._tiles = torch.from_numpy(whole_tiles())
        *_, scratch_bytes = scratch_offsets(padded(max(lengths)), width // TILE_DEPTH)
        self._scratch = torch.empty(scratch_bytes, dtype=torch.uint8)

    def __call__(self, projected: Tensor) -> Tensor:
        heads, width = self._shape
        rows = max(len(projected), self._tokens)
        context = projected.new_empty(rows, heads * width)
        context[self._tokens :] = 0
        assert self._kernels.attend is not None
        self._kernels.attend(
            _address(projected, torch.bfloat16, rows, 3 * heads * width),
            context.data_ptr(),
            self._starts.data_ptr(),
            self._lengths.data_ptr(),
            len(self._lengths),
            heads,
            width,
            math.log2(math.e) / math.sqrt(width),
            self._tiles.data_ptr(),
            self._scratch.data_ptr(),
        )
        return context


def _address(tensor: Tensor, dtype: torch.dtype, *shape: int) -> int:
    """Where the numbers of `tensor` are. RuntimeError if they are not what a kernel takes."""
    if tensor.dtype != dtype or tensor.shape != shape or not tensor.is_contiguous():
        found = f"{tensor.dtype} {tuple(tensor.shape)}"
        raise RuntimeError(f"a kernel takes {dtype} {shape}, row after row, and not {found}")
    return tensor.data_ptr()
