"""What stands between the products of a block: the sum with the residual, and its norm.

Arguments are addresses and counts. A width is a multiple of `LANES`.
"""

from __future__ import annotations

from serve.backends.kernels.lanes import (
    load,
    load_halves,
    root,
    splat,
    store,
    store_halves,
    total,
)
from serve.backends.kernels.layout import LANES

_WORD_BYTES, _HALF_BYTES = 4, 2


def add_norm(
    rows: int,
    product: int,
    rounded: int,
    weight: int,
    bias: int,
    count: int,
    width: int,
    epsilon: float,
) -> None:
    """Add `product`, bfloat16 [count, width], to `rows`, float32, and normalise each row of that
    (layer norm, arXiv 1607.06450). `rounded`, bfloat16, takes the result as well."""
    for row in range(count):
        values = rows + row * width * _WORD_BYTES
        halves = row * width * _HALF_BYTES
        sums = splat(0.0)
        for column in range(0, width, LANES):
            added = load_halves(product + halves + column * _HALF_BYTES)
            value = load(values + column * _WORD_BYTES) + added
            store(values + column * _WORD_BYTES, value)
            sums = sums + value
        mean = splat(total(sums) / width)
        squares = splat(0.0)
        for column in range(0, width, LANES):
            distance = load(values + column * _WORD_BYTES) - mean
            squares = squares + distance * distance
        factor = splat(1.0) / root(splat(total(squares) / width + epsilon))
        for column in range(0, width, LANES):
            beside = column * _WORD_BYTES
            value = (load(values + beside) - mean) * factor * load(weight + beside)
            value = value + load(bias + beside)
            store(values + beside, value)
            store_halves(rounded + halves + column * _HALF_BYTES, value)
