"""The matrix unit of the processor (Intel AMX) as `attention` uses it.

Nothing here needs numba: it is for those who run the kernels, too.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import numpy as np
from llvmlite import binding
from numpy.typing import NDArray

LANES = 16  # float32 of a vector register
TILE_ROWS, TILE_ROW_BYTES = 16, 64
TILE_BYTES = TILE_ROWS * TILE_ROW_BYTES
TILE_DEPTH = TILE_ROW_BYTES // 2  # bfloat16 that one product sums up
LAYOUT_BYTES = 64
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
    """The layout in which every tile has its full size, uint8 [LAYOUT_BYTES]."""
    layout = np.zeros(LAYOUT_BYTES, np.uint8)
    layout[0] = 1  # the palette
    layout[16:32].view(np.uint16)[:] = TILE_ROW_BYTES
    layout[48:56] = TILE_ROWS
    return layout


def scratch_bytes(longest: int, width: int) -> int:
    """What `attention.attend` needs for inputs of at most `longest` rows."""
    keys, depth = -(-longest // TILE_DEPTH) * TILE_DEPTH, width // TILE_DEPTH
    per_key = 2 * depth * TILE_ROW_BYTES + TILE_ROW_BYTES + TILE_ROW_BYTES // 2
    return LAYOUT_BYTES + keys * per_key + (2 * depth + 1) * TILE_BYTES
