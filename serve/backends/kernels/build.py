"""Compile the kernels to an object file: `python -m serve.backends.kernels.build FILE`.

A process of its own does it: numba takes a second to import and much memory, and whoever runs the
kernels needs none of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from llvmlite import binding
from numba import cfunc, types

from serve.backends.kernels import attention, rows
from serve.backends.kernels.amx import has_tiles

_NUMBER, _REAL, _NUMBERS = types.int64, types.float64, types.CPointer(types.int64)
_ROWS: Mapping[Callable[..., None], Any] = {
    rows.add_norm: types.void(*[_NUMBER] * 7, _REAL),
    rows.gelu: types.void(_NUMBER, _NUMBER),
}
_TILES: Mapping[Callable[..., None], Any] = {
    attention.attend: types.void(
        *[_NUMBER] * 2, *[_NUMBERS] * 2, *[_NUMBER] * 3, _REAL, *[_NUMBER] * 2
    ),
}


def build() -> bytes:
    """Machine code for this processor; its functions have the names of the kernels."""
    signatures = {**_ROWS, **_TILES} if has_tiles() else _ROWS
    module = binding.parse_assembly("")
    for kernel, signature in signatures.items():
        compiled = cfunc(signature, error_model="numpy")(kernel)
        part = binding.parse_assembly(compiled.inspect_llvm())
        part.get_function(compiled.native_name).name = kernel.__name__
        module.link_in(part)
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )
    _keep(module, {kernel.__name__ for kernel in signatures}, machine)
    code: bytes = machine.emit_object(module)
    return code


def _keep(module: Any, names: set[str], machine: Any) -> None:
    """Leave nothing but the functions of these names: what numba adds for errors calls numba."""
    for function in module.functions:
        if not function.is_declaration and function.name not in names:
            function.linkage = "internal"
    passes = binding.create_pass_builder(machine, binding.PipelineTuningOptions(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    if missing := [function.name for function in module.functions if _is_outside(function)]:
        raise SystemExit(f"the kernels call {', '.join(missing)}")


def _is_outside(function: Any) -> bool:
    return function.is_declaration and not function.name.startswith("llvm.")


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(build())
