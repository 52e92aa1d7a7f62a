"""Linear layers over packed rows, their weights laid out once for the CPU's matrix units.

`torch.nn.functional.linear` re-orders the weights on every call, which costs as much as the product
itself at the sizes of an encoder. The mkldnn operators take weights that were re-ordered once, and
apply the activation while the product is still in registers.

oneDNN compiles a kernel for each number of rows that it meets, in about a millisecond, and keeps it
for good. So rows come in steps: a batch of any length finds its kernels compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

_LEAST_STEP = 16
_STEPS_PER_OCTAVE = 8
Activation = Literal["gelu", "gelu-tanh", "relu"]
_FUSED: Mapping[Activation, tuple[str, str]] = {
    "gelu": ("gelu", "none"),
    "gelu-tanh": ("gelu", "tanh"),
    "relu": ("relu", ""),
}


def stepped(rows: int) -> int:
    """The least number of rows from `rows` up that kernels are compiled for, an eighth more at
    most beyond 128."""
    step = max(_LEAST_STEP, (1 << (rows.bit_length() - 1)) // _STEPS_PER_OCTAVE)
    return -(-rows // step) * step


class Linear:
    """`x W^T + b` for rows x [n, inputs], by PyTorch's own linear."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, rows: Tensor) -> Tensor:
        return functional.linear(rows, self._weight, self._bias)

    def activated(self, rows: Tensor, activation: Activation) -> Tensor:
        """`activation(x W^T + b)`."""
        product = self(rows)
        if activation == "relu":
            return product.relu_()
        approximate = "tanh" if activation == "gelu-tanh" else "none"
        result: Tensor = torch.ops.aten.gelu_(product, approximate=approximate)
        return result


class ReorderedLinear(Linear):
    """The same by mkldnn, with the weights re-ordered here. Fastest for `stepped` rows."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__(torch.ops.mkldnn._reorder_linear_weight(weight), bias)

    def __call__(self, rows: Tensor) -> Tensor:
        return self._product(rows, "none", "")

    def activated(self, rows: Tensor, activation: Activation) -> Tensor:
        # Before the product is rounded to the dtype of the rows.
        return self._product(rows, *_FUSED[activation])

    def _product(self, rows: Tensor, activation: str, algorithm: str) -> Tensor:
        given = rows.shape[0]
        if extra := stepped(given) - given:
            rows = functional.pad(rows, (0, 0, 0, extra))
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self._weight, self._bias, activation, [], algorithm
        )
        return product[:given]


def make_linear(weight: Tensor, bias: Tensor, dtype: torch.dtype, device: str) -> Linear:
    """The fastest linear layer that `dtype` and `device` have."""
    weight, bias = weight.to(device, dtype), bias.to(device, dtype)
    return (ReorderedLinear if _reorders(dtype, device) else Linear)(weight, bias)


def _reorders(dtype: torch.dtype, device: str) -> bool:
    if device != "cpu" or not hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        return False
    return dtype != torch.bfloat16 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
