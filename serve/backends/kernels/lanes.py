"""Sixteen float32 in a vector register, as a type of numba.

Code that numba compiles has no vectors of its own, and what LLVM makes of a loop is a matter of
luck. These operations are what they say on every processor: an instruction or a few with AVX-512,
two or four times as many elsewhere. Addresses are integers; the caller sees to their bounds.
"Halves" are bfloat16: the upper half of a float32.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

from serve.backends.kernels.layout import LANES

_WORD, _HALF, _FLOAT = ir.IntType(32), ir.IntType(16), ir.FloatType()
_WORDS, _HALVES, _FLOATS = (ir.VectorType(kind, LANES) for kind in (_WORD, _HALF, _FLOAT))
_FLAGS = ("nsz", "arcp", "contract")  # products and sums may be fused; what is no number stays so
# 2^x from 0.5 below a whole number to 0.5 above, within 1e-4: a bfloat16 has 2e-3.
_POWERS = (5.5504109e-2, 2.4022651e-1, 6.9314718e-1, 1.0)
_LEAST_EXPONENT = -126.0
F = TypeVar("F", bound=Callable[..., Any])


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes")


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: _Lanes) -> None:
        super().__init__(manager, kind, _FLOATS)


Lanes = Any  # to type checkers: compiled code alone has values of the type
_lanes, address = _Lanes(), types.int64
nothing = types.boolean  # an operation gives something: who calls drops it


def compiled(function: F) -> F:
    """`function` for compiled code to call."""
    return cast(F, njit(function, error_model="numpy"))


def operation(result: types.Type, arguments: Sequence[types.Type], emit: Callable[..., Any]) -> Any:
    """What compiled code calls as a function: the instructions that `emit(builder, *values)` adds.

    `emit` returns None for the result `nothing`.
    """
    signature = result(*arguments)

    def generate(context: Any, builder: Any, _: Any, values: Sequence[Any]) -> Any:
        value = emit(builder, *values)
        return context.get_constant(nothing, True) if result == nothing else value

    typed = (signature, generate)
    by_count: Mapping[int, Callable[..., Any]] = {
        1: lambda context, a: typed,
        2: lambda context, a, b: typed,
        3: lambda context, a, b, c: typed,
        4: lambda context, a, b, c, d: typed,
        5: lambda context, a, b, c, d, e: typed,
    }
    return intrinsic(by_count[len(arguments)])


def at(builder: Any, address: Any, kind: ir.Type) -> Any:
    """`address` as a pointer to a `kind`."""
    return builder.inttoptr(address, kind.as_pointer())


def _all(builder: Any, value: Any) -> Any:
    vector = ir.VectorType(value.type, LANES)
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, value, _WORD(0))
    return builder.shuffle_vector(one, undefined, ir.Constant(_WORDS, [0] * LANES))


def _read(builder: Any, address: Any, kind: ir.Type) -> Any:
    return builder.load(at(builder, address, kind), align=2)


def _write(builder: Any, address: Any, value: Any) -> None:
    builder.store(value, at(builder, address, value.type), align=2)


def _larger(builder: Any, one: Any, other: Any) -> Any:
    """`other` where one of the two is no number."""
    return builder.select(builder.fcmp_ordered(">", one, other, flags=_FLAGS), one, other)


def _times_plus(builder: Any, one: Any, other: Any, more: Any) -> Any:
    return builder.fadd(builder.fmul(one, other, flags=_FLAGS), more, flags=_FLAGS)


def _exp2(builder: Any, power: Any) -> Any:
    power = _larger(builder, _all(builder, _FLOAT(_LEAST_EXPONENT)), power)
    below = builder.fsub(power, _all(builder, _FLOAT(0.5)), flags=_FLAGS)
    whole = builder.fptosi(below, _WORDS)  # the nearest: towards 0, and nothing is above it
    part = builder.fsub(power, builder.sitofp(whole, _FLOATS), flags=_FLAGS)
    value = _all(builder, _FLOAT(_POWERS[0]))
    for factor in _POWERS[1:]:
        value = _times_plus(builder, value, part, _all(builder, _FLOAT(factor)))
    exponent = builder.shl(whole, _all(builder, _WORD(23)))
    return builder.bitcast(builder.add(builder.bitcast(value, _WORDS), exponent), _FLOATS)


def _total(builder: Any, lanes: Any) -> Any:
    kind = ir.FunctionType(_FLOAT, [_FLOAT, _FLOATS])
    name = "llvm.vector.reduce.fadd.v16f32"
    reduce = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(reduce, [_FLOAT(0.0), lanes], fastmath=(*_FLAGS, "reassoc"))


def _root(builder: Any, lanes: Any) -> Any:
    kind = ir.FunctionType(_FLOATS, [_FLOATS])
    root = cgutils.get_or_insert_function(builder.module, kind, "llvm.sqrt.v16f32")
    return builder.call(root, [lanes])


def _shifted(builder: Any, bits: Any) -> Any:
    return builder.lshr(bits, _all(builder, _WORD(16)))


def _rounded(builder: Any, lanes: Any) -> Any:
    """Words whose upper halves are the nearest bfloat16, ties to even."""
    bits = builder.bitcast(lanes, _WORDS)
    odd = builder.and_(_shifted(builder, bits), _all(builder, _WORD(1)))
    return builder.add(bits, builder.add(odd, _all(builder, _WORD(0x7FFF))))


def _load_halves(builder: Any, address: Any) -> Any:
    words = builder.zext(_read(builder, address, _HALVES), _WORDS)
    return builder.bitcast(builder.shl(words, _all(builder, _WORD(16))), _FLOATS)


def _store_halves(builder: Any, address: Any, lanes: Any) -> None:
    upper = _shifted(builder, _rounded(builder, lanes))
    _write(builder, address, builder.trunc(upper, _HALVES))


def _store_pairs(builder: Any, address: Any, first: Any, second: Any) -> None:
    half = _all(builder, _WORD(0x8000))
    first, second = (builder.add(builder.bitcast(lanes, _WORDS), half) for lanes in (first, second))
    upper = builder.and_(second, _all(builder, _WORD(0xFFFF0000)))
    _write(builder, address, builder.or_(_shifted(builder, first), upper))


def _split_pairs(builder: Any, source: Any, first: Any, second: Any) -> None:
    words = _read(builder, source, _WORDS)
    _write(builder, first, builder.trunc(words, _HALVES))
    _write(builder, second, builder.trunc(_shifted(builder, words), _HALVES))


def _copy(builder: Any, source: Any, target: Any) -> None:
    _write(builder, target, _read(builder, source, _WORDS))


def _transpose(builder: Any, source: Any, source_step: Any, target: Any, target_step: Any) -> None:
    """Swap ever larger squares across the diagonal (Eklundh 1972)."""
    steps = [ir.IntType(64)(row) for row in range(LANES)]
    rows = []
    for step in steps:
        address = builder.add(source, builder.mul(source_step, step))
        rows.append(_read(builder, address, _WORDS))
    for size in (1, 2, 4, 8):
        upper = [lane if not lane & size else LANES + lane - size for lane in range(LANES)]
        lower = [lane + size if not lane & size else LANES + lane for lane in range(LANES)]
        masks = [ir.Constant(_WORDS, mask) for mask in (upper, lower)]
        for row in (row for row in range(LANES) if not row & size):
            pair = rows[row], rows[row + size]
            rows[row], rows[row + size] = (builder.shuffle_vector(*pair, mask) for mask in masks)
    for step, row in zip(steps, rows, strict=True):
        _write(builder, builder.add(target, builder.mul(target_step, step)), row)


# load(address), store(address, lanes): float32
load = operation(_lanes, [address], lambda b, address: _read(b, address, _FLOATS))
store = operation(nothing, [address, _lanes], _write)
# The same for 16 halves, rounded to the nearest, ties to even.
load_halves = operation(_lanes, [address], _load_halves)
store_halves = operation(nothing, [address, _lanes], _store_halves)
# store_pairs(address, first, second): halves of the two in turn, 16 words; ties are rounded up
store_pairs = operation(nothing, [address, _lanes, _lanes], _store_pairs)
# split_pairs(source, first, second): the way back, 16 halves to each address
split_pairs = operation(nothing, [address, address, address], _split_pairs)
# copy(source, target): 64 bytes
copy = operation(nothing, [address, address], _copy)
# transpose(source, source_step, target, target_step): 16 x 16 words; steps in bytes
transpose = operation(nothing, [address] * 4, _transpose)
splat = operation(_lanes, [types.float32], _all)  # the same in every lane
larger = operation(_lanes, [_lanes, _lanes], _larger)
exp2 = operation(_lanes, [_lanes], _exp2)  # of lanes that are 0 at most; 2^-126 at least
root = operation(_lanes, [_lanes], _root)
total = operation(types.float32, [_lanes], _total)

_sum = operation(_lanes, [_lanes, _lanes], lambda b, x, y: b.fadd(x, y, flags=_FLAGS))
_difference = operation(_lanes, [_lanes, _lanes], lambda b, x, y: b.fsub(x, y, flags=_FLAGS))
_product = operation(_lanes, [_lanes, _lanes], lambda b, x, y: b.fmul(x, y, flags=_FLAGS))
_quotient = operation(_lanes, [_lanes, _lanes], lambda b, x, y: b.fdiv(x, y, flags=_FLAGS))


def _overload(symbol: Callable[..., Any], function: Any) -> None:
    def choose(one: types.Type, other: types.Type) -> Callable[..., Any] | None:
        if one == other == _lanes:
            return lambda one, other: function(one, other)
        return None

    overload(symbol, strict=False)(choose)


_overload(operator.add, _sum)
_overload(operator.sub, _difference)
_overload(operator.mul, _product)
_overload(operator.truediv, _quotient)
