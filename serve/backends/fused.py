"""The same operations by our own kernels, in bfloat16 on the CPU.

PyTorch's pass over the same rows again and again: a sum, a norm and a rounding write each row three
times. Its attention does the softmax across registers and costs twice as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from serve.backends.attention import Attend
from serve.backends.kernels.amx import (
    LANES,
    TILE_DEPTH,
    may_use_tiles,
    scratch_bytes,
    whole_tiles,
)
from serve.backends.kernels.library import Kernels, load_kernels
from serve.backends.linear import Activation, Linear
from serve.backends.ops import Norm, Ops


class FusedOps(Ops):
    """`Ops` by kernels; what they do not take is left to PyTorch."""

    def __init__(self, kernels: Kernels) -> None:
        super().__init__(torch.bfloat16, "cpu")
        self._kernels = kernels
        self._attend = kernels.attend if may_use_tiles() else None
        self._layout = torch.from_numpy(whole_tiles())

    def attention(self, lengths: Sequence[int], heads: int, width: int) -> Attend:
        if self._attend is None or width % TILE_DEPTH:
            return super().attention(lengths, heads, width)
        return _TileAttention(self._attend, self._layout, lengths, heads, width)

    def add_norm(self, rows: Tensor, product: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
        count, width = rows.shape
        if width % LANES:
            return super().add_norm(rows, product, norm)
        rounded = torch.empty_like(product)
        addresses = (_address(tensor) for tensor in (rows, product, rounded))
        weights = norm.weight.data_ptr(), norm.bias.data_ptr()
        self._kernels.add_norm(*addresses, *weights, count, width, norm.epsilon)
        return rows, rounded

    def activated(self, linear: Linear, rows: Tensor, activation: Activation) -> Tensor:
        if activation != "gelu":
            return super().activated(linear, rows, activation)
        product = linear(rows)
        if product.numel() % LANES:
            return torch.nn.functional.gelu(product)
        self._kernels.gelu(_address(product), product.numel())
        return product


class _TileAttention:
    """Attention over inputs of `lengths`; one thread at a time, for the memory that it keeps."""

    def __init__(
        self,
        kernel: Callable[..., None],
        layout: Tensor,
        lengths: Sequence[int],
        heads: int,
        width: int,
    ) -> None:
        self._kernel = kernel
        self._layout = layout
        self._lengths = torch.tensor(lengths)
        self._starts = self._lengths.cumsum(0) - self._lengths
        self._tokens = sum(lengths)
        self._shape = heads, width
        self._scratch = torch.empty(scratch_bytes(max(lengths), width), dtype=torch.uint8)

    def __call__(self, projected: Tensor) -> Tensor:
        heads, width = self._shape
        context = projected.new_empty(len(projected), heads * width)
        context[self._tokens :] = 0
        self._kernel(
            _address(projected.view(-1, 3, heads, width)),
            context.data_ptr(),
            self._starts.data_ptr(),
            self._lengths.data_ptr(),
            len(self._lengths),
            heads,
            width,
            math.log2(math.e) / math.sqrt(width),
            self._layout.data_ptr(),
            self._scratch.data_ptr(),
        )
        return context


def make_ops(dtype: torch.dtype, device: str, cache: Path) -> Ops:
    """The fastest operations that `dtype` and `device` have; kernels are kept below `cache`."""
    if dtype == torch.bfloat16 and device == "cpu":
        kernels = load_kernels(cache)
        if kernels is not None:
            return FusedOps(kernels)
    return Ops(dtype, device)


def _address(tensor: Tensor) -> int:
    if not tensor.is_contiguous():
        raise RuntimeError("a kernel takes rows that lie one after the other")
    return tensor.data_ptr()
