"""Self-attention of whole inputs on the matrix unit: bfloat16, with sums in float32.

A head of an input is done 16 queries at a time. Their scores for all keys stay in the nearest
cache, one row a key, with the queries in the lanes. So the softmax never works across a register,
and its rows, two by two, are what the next product takes.

Arguments are addresses, steps in bytes and counts.
"""

from __future__ import annotations

import math
from typing import Any

from serve.backends.kernels.lanes import (
    Lanes,
    compiled,
    copy,
    exp2,
    larger,
    load,
    splat,
    split_pairs,
    store,
    store_halves,
    store_pairs,
    transpose,
)
from serve.backends.kernels.layout import (
    LANES,
    TILE_BYTES,
    TILE_DEPTH,
    TILE_ROW_BYTES,
    TILE_ROWS,
    padded,
    scratch_offsets,
)
from serve.backends.kernels.tiles import configure, configured, product

_HALF_BYTES = 2
_LEAST = -math.inf
_padded, _scratch_offsets = compiled(padded), compiled(scratch_offsets)


def attend(
    projected: int,
    context: int,
    starts: Any,
    lengths: Any,
    inputs: int,
    heads: int,
    width: int,
    scale: float,
    tiles: int,
    scratch: int,
) -> None:
    """Attention of `inputs` inputs of `lengths` rows from `starts` on (pointers to int64), each
    over its own rows.

    `projected` is bfloat16 [rows, 3, heads, width]: queries, keys and values. `context`, of
    [rows, heads, width], takes the result. `width` is a multiple of `TILE_DEPTH`. The scores times
    `scale` are powers of two. `tiles` is `whole_tiles`; `scratch_offsets` says what `scratch` has.
    """
    configured(scratch)
    configure(tiles)
    row_bytes = heads * width * _HALF_BYTES
    for index in range(inputs):
        for head in range(heads):
            beside = head * width * _HALF_BYTES
            _attend_head(
                projected + starts[index] * 3 * row_bytes + beside,
                context + starts[index] * row_bytes + beside,
                row_bytes,
                lengths[index],
                width // TILE_DEPTH,
                scale,
                scratch,
            )
    configure(scratch)


@compiled
def _attend_head(
    queries: int,
    context: int,
    row_bytes: int,
    length: int,
    depth: int,
    scale: float,
    scratch: int,
) -> None:
    rows = _padded(length)
    offsets = _scratch_offsets(rows, depth)
    keys, values, scores = scratch + offsets[0], scratch + offsets[1], scratch + offsets[2]
    powers, staged, turned = scratch + offsets[3], scratch + offsets[4], scratch + offsets[5]
    step = 3 * row_bytes
    _gather(queries + row_bytes, step, length, depth, keys)
    _turn_values(queries + 2 * row_bytes, step, length, depth, values, staged, turned)
    for first in range(0, length, TILE_ROWS):
        count = min(TILE_ROWS, length - first)
        _gather(queries + first * step, step, count, depth, staged)
        for tile in range(depth):
            source, target = staged + tile * TILE_ROW_BYTES, turned + tile * TILE_BYTES
            transpose(source, depth * TILE_ROW_BYTES, target, TILE_ROW_BYTES)
        for block in range(0, length, TILE_ROWS):
            left = keys + block * depth * TILE_ROW_BYTES
            product(scores + block * TILE_ROW_BYTES, left, depth * TILE_ROW_BYTES, turned, depth)
        sums = _softmax(scores, length, scale, powers)
        for tile in range(2 * depth):
            left = values + tile * TILE_ROWS * rows * _HALF_BYTES
            product(turned, left, rows * _HALF_BYTES, powers, rows // TILE_DEPTH)
            target = context + first * row_bytes + tile * LANES * _HALF_BYTES
            _write_context(turned, sums, count, target, row_bytes, staged)


@compiled
def _gather(source: int, step: int, rows: int, depth: int, target: int) -> None:
    """Put `rows` rows one after the other."""
    for row in range(rows):
        for tile in range(depth):
            beside = tile * TILE_ROW_BYTES
            copy(source + row * step + beside, target + row * depth * TILE_ROW_BYTES + beside)


@compiled
def _turn_values(
    source: int, step: int, length: int, depth: int, target: int, staged: int, turned: int
) -> None:
    """Values [length, width] to [width, padded length], with zeros at the end."""
    rows = _padded(length)
    for first in range(0, rows, TILE_ROWS):
        count = max(0, min(TILE_ROWS, length - first))
        _gather(source + first * step, step, count, depth, staged)
        for piece in range(count * depth, TILE_ROWS * depth):
            store(staged + piece * TILE_ROW_BYTES, splat(0.0))
        for tile in range(depth):
            piece = staged + tile * TILE_ROW_BYTES
            transpose(piece, depth * TILE_ROW_BYTES, turned, TILE_ROW_BYTES)
            for pair in range(TILE_ROWS):
                row = target + ((tile * TILE_ROWS + pair) * 2 * rows + first) * _HALF_BYTES
                split_pairs(turned + pair * TILE_ROW_BYTES, row, row + rows * _HALF_BYTES)


@compiled
def _softmax(scores: int, length: int, scale: float, powers: int) -> Lanes:
    """Powers of the scores, rows in pairs; their sums are returned, not yet divided by."""
    rows = _padded(length)
    for key in range(length, rows):
        store(scores + key * TILE_ROW_BYTES, splat(_LEAST))
    factor = splat(scale)
    most = _largest(scores, rows)
    sums = splat(0.0)
    for pair in range(rows // 2):
        row = scores + pair * 2 * TILE_ROW_BYTES
        first = exp2((load(row) - most) * factor)
        second = exp2((load(row + TILE_ROW_BYTES) - most) * factor)
        sums = sums + (first + second)
        store_pairs(powers + pair * TILE_ROW_BYTES, first, second)
    return sums


@compiled
def _largest(scores: int, rows: int) -> Lanes:
    """Of four rows at a time: each comparison waits for the one before."""
    one = two = three = four = splat(_LEAST)
    for key in range(0, rows, 4):
        row = scores + key * TILE_ROW_BYTES
        one = larger(one, load(row))
        two = larger(two, load(row + TILE_ROW_BYTES))
        three = larger(three, load(row + 2 * TILE_ROW_BYTES))
        four = larger(four, load(row + 3 * TILE_ROW_BYTES))
    return larger(larger(one, two), larger(three, four))


@compiled
def _write_context(
    turned: int, sums: Lanes, count: int, target: int, row_bytes: int, staged: int
) -> None:
    """16 values of each query, [values, queries], over the query's sum, to `count` rows."""
    shares = splat(1.0) / sums
    for value in range(LANES):
        row = turned + value * TILE_ROW_BYTES
        store(row, load(row) * shares)
    transpose(turned, TILE_ROW_BYTES, staged, TILE_ROW_BYTES)
    for row in range(count):
        store_halves(target + row * row_bytes, load(staged + row * TILE_ROW_BYTES))
