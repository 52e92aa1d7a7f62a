"""What the kernels and those who run them agree on. Nothing here needs numba.

A tile is a register of the matrix unit (Intel AMX): 16 rows of 64 bytes.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from functools import cache

import numpy as np
from llvmlite import binding
from numpy.typing import NDArray

LANES = 16  # float32 of a vector register
TILE_ROWS, TILE_ROW_BYTES = 16, 64
TILE_BYTES = TILE_ROWS * TILE_ROW_BYTES
TILE_DEPTH = TILE_ROW_BYTES // 2  # bfloat16 that one product sums up
CONFIGURATION_BYTES = 64
# The arguments of each kernel: n a number or an address, p a pointer to int64, r a real number.
ROW_KERNELS: Mapping[str, str] = {"add_norm": "nnnnnnnr"}
TILE_KERNELS: Mapping[str, str] = {"attend": "nnppnnnrnn"}
# Linux on x86-64: the system call arch_prctl, its ARCH_REQ_XCOMP_PERM, and the tiles' data
# (Documentation/arch/x86/xstate.rst).
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


def has_tiles() -> bool:
    """Whether the processor has tiles and multiplies bfloat16 in them, on Linux."""
    features = binding.get_host_cpu_features()
    known = bool(features.get("amx-tile") and features.get("amx-bf16"))
    return known and sys.platform == "linux"


@cache
def may_use_tiles() -> bool:
    """Whether this process may use them: Linux gives the permission to who asks for it."""
    if not has_tiles():
        return False
    refused: int = ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA)
    return not refused


def whole_tiles() -> NDArray[np.uint8]:
    """The configuration that gives every tile its full size, uint8 [CONFIGURATION_BYTES].

    Source: Intel's Software Developer's Manual, LDTILECFG.
    """
    configuration = np.zeros(CONFIGURATION_BYTES, np.uint8)
    configuration[0] = 1  # the palette
    configuration[16:32].view(np.uint16)[:] = TILE_ROW_BYTES
    configuration[48:56] = TILE_ROWS
    return configuration


def padded(length: int) -> int:
    """Rows that `attend` makes of an input of `length`: zeros fill them up."""
    return (length + TILE_DEPTH - 1) // TILE_DEPTH * TILE_DEPTH


def scratch_offsets(rows: int, depth: int) -> tuple[int, int, int, int, int, int, int]:
    """Where `attend` keeps what, for `rows` padded rows of `depth` times 32 values: keys, values,
    scores, powers, 16 rows as they are and turned. The last is the size of it all, in bytes."""
    keys = CONFIGURATION_BYTES  # what the tiles were before comes first
    values = keys + rows * depth * TILE_ROW_BYTES
    scores = values + rows * depth * TILE_ROW_BYTES
    powers = scores + rows * TILE_ROW_BYTES
    staged = powers + rows * TILE_ROW_BYTES // 2
    turned = staged + depth * TILE_BYTES
    return keys, values, scores, powers, staged, turned, turned + depth * TILE_BYTES
