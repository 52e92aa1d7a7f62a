"""What stands between the products of a block, row by row: residual and norm, and GELU.

Arguments are addresses and counts. A width is a multiple of `LANES`.
"""

from __future__ import annotations

from serve.backends.kernels.lanes import (
    larger,
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
# The normal distribution function less 0.5, over x, as a polynomial in x^2, from -4 to 4, where it
# reaches 0 and 1: within 3.2e-5. A bfloat16 is within 2e-3. By reweighted least squares (Lawson
# 1961). What is a little under 0.5 makes sure that it is 0 below -4.
_BOUND = 4.0
_HALF = 0.5 - 2.0**-21
_NORMAL = (
    -1.2861688e-9,
    1.0492614e-7,
    -3.7209727e-6,
    7.632505e-5,
    -1.021895e-3,
    9.5840991e-3,
    -6.6067845e-2,
    3.9880702e-1,
)


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


def gelu(values: int, count: int) -> None:
    """GELU (arXiv 1606.08415) of `count` bfloat16, a multiple of `LANES`, where they are."""
    zero, bound = splat(0.0), splat(_BOUND)
    for index in range(0, count, LANES):
        value = load_halves(values + index * _HALF_BYTES)
        near = larger(zero - bound, zero - larger(zero - bound, zero - value))
        square = near * near
        share = splat(_NORMAL[0])
        for factor in _NORMAL[1:]:
            share = share * square + splat(factor)
        below = larger(zero, share * near + splat(_HALF))
        store_halves(values + index * _HALF_BYTES, value * below)
