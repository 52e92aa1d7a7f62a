"""Compile the kernels and write the object file: `python -m serve.backends.kernels.build > FILE`.

A process of its own does it: numba takes a second to import and much memory, and whoever runs the
kernels needs none of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import Any

from llvmlite import binding
from numba import cfunc, types

from serve.backends.kernels import attention, rows, sealed
from serve.backends.kernels.layout import ROW_KERNELS, TILE_KERNELS, has_tiles

_TYPES = {"n": types.int64, "p": types.CPointer(types.int64), "r": types.float64}
_KERNELS: Collection[Callable[..., None]] = (attention.attend, rows.add_norm)


def build() -> bytes:
    """Machine code for this processor; its functions have the names of the kernels."""
    wanted = {**ROW_KERNELS, **(TILE_KERNELS if has_tiles() else {})}
    module = binding.parse_assembly("")
    for kernel in _KERNELS:
        if arguments := wanted.get(kernel.__name__):
            module.link_in(_compiled(kernel, arguments))
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )
    _keep(module, wanted, machine)
    code: bytes = machine.emit_object(module)
    return code


def _compiled(kernel: Callable[..., None], arguments: str) -> Any:
    signature = types.void(*(_TYPES[letter] for letter in arguments))
    compiled = cfunc(signature, error_model="numpy")(kernel)
    module = binding.parse_assembly(compiled.inspect_llvm())
    module.get_function(compiled.native_name).name = kernel.__name__
    return module


def _keep(module: Any, names: Collection[str], machine: Any) -> None:
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
    sys.stdout.buffer.write(sealed(build()))
