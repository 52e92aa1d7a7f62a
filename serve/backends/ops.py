"""What a block does between its products, on PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from ragplane.core.errors import ModelError
from serve.backends.attention import Attend, attention


class Norm:
    """Layer normalisation; its weights stay float32 whatever the rows are."""

    def __init__(self, weight: Tensor, bias: Tensor, epsilon: float, device: str) -> None:
        self.weight = weight.to(device, torch.float32)
        self.bias = bias.to(device, torch.float32)
        self.epsilon = epsilon

    def __call__(self, rows: Tensor) -> Tensor:
        if rows.is_cuda:  # no mixed kernel there
            return functional.layer_norm(
                rows.float(), self.weight.shape, self.weight, self.bias, self.epsilon
            ).to(rows.dtype)
        return functional.layer_norm(rows, self.weight.shape, self.weight, self.bias, self.epsilon)


class Ops:
    """The operations for one `dtype` of products on one `device`."""

    def __init__(self, dtype: torch.dtype, device: str) -> None:
        self.dtype = dtype
        self.device = device

    def attention(self, lengths: Sequence[int], heads: int, width: int) -> Attend:
        """Attention over packed inputs of `lengths`, with `heads` heads of `width` values.

        What it gives keeps memory for its calls: it is for one thread at a time.
        """
        return attention(lengths, heads, self.dtype, self.device)

    def add_norm(self, rows: Tensor, product: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
        """`norm` of rows + product, in float32 and in the dtype of products.

        Both are [n, hidden], `rows` in float32, and it may be written over.
        """
        normed = norm(rows + product)
        return normed, normed.to(self.dtype)


def make_ops(dtype: torch.dtype, device: str, cache: Path) -> Ops:
    """The fastest operations that `dtype` and `device` have; kernels are kept in `cache`.

    Where kernels cannot be compiled or loaded, PyTorch's own operations serve.
    """
    if dtype != torch.bfloat16 or device != "cpu":
        return Ops(dtype, device)
    try:
        from serve.backends.fused import FusedOps
        from serve.backends.kernels.library import load_kernels

        kernels, unkept = load_kernels(cache)
    except (ModelError, OSError, ImportError, RuntimeError) as error:
        _warn("no kernels here; PyTorch's operations are used", error)
        return Ops(dtype, device)
    if unkept is not None:
        _warn("the compiled kernels are not kept", unkept)
    return FusedOps(kernels)


def _warn(what: str, error: Exception) -> None:
    import structlog  # for a third of a second, which a server's start can do without

    structlog.get_logger().warning(what, reason=str(error))
