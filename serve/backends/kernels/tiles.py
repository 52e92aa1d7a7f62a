"""Operations of the matrix unit (Intel AMX) for compiled code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from serve.backends.kernels.lanes import address, at, nothing, operation
from serve.backends.kernels.layout import TILE_BYTES, TILE_ROW_BYTES

_BYTE, _INTEGER = ir.IntType(8), ir.IntType(64)
_SUM, _LEFT, _RIGHT = (_BYTE(tile) for tile in range(3))


def _call(builder: Any, name: str, *values: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.{name}"), values)


def _load_tile(builder: Any, tile: Any, source: Any, step: Any) -> None:
    _call(builder, "tileloadd64", tile, at(builder, source, _BYTE), step)


def _product(builder: Any, target: Any, left: Any, left_step: Any, right: Any, tiles: Any) -> None:
    _call(builder, "tilezero", _SUM)
    with cgutils.for_range(builder, tiles) as loop:
        beside = builder.mul(loop.index, _INTEGER(TILE_ROW_BYTES))
        below = builder.mul(loop.index, _INTEGER(TILE_BYTES))
        _load_tile(builder, _LEFT, builder.add(left, beside), left_step)
        _load_tile(builder, _RIGHT, builder.add(right, below), _INTEGER(TILE_ROW_BYTES))
        _call(builder, "tdpbf16ps", _SUM, _LEFT, _RIGHT)
    pointer = at(builder, target, _BYTE)
    _call(builder, "tilestored64", _SUM, pointer, _INTEGER(TILE_ROW_BYTES))


# configure(address): lay the tiles out as the 64 bytes there say.
configure = operation(
    nothing, [address], lambda b, source: _call(b, "ldtilecfg", at(b, source, _BYTE))
)
# configured(address): write there how they are laid out.
configured = operation(
    nothing, [address], lambda b, target: _call(b, "sttilecfg", at(b, target, _BYTE))
)
# product(target, left, left_step, right, tiles): 16 x 16 float32 at `target`, the product of 16
# rows of `tiles` times 32 bfloat16, `left_step` bytes apart, and `tiles` times 16 rows of 16 pairs.
product = operation(nothing, [address] * 5, _product)
