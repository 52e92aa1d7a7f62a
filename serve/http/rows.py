"""Vectors as JSON. A large answer is written in slices, so that the event loop stays free."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import orjson

from serve.encoder import Vectors

T = TypeVar("T")
_SLICE_ROWS = 128


def float_row(row: Vectors) -> bytes:
    """A JSON list, nested as the array is; its digits carry each float32 exactly."""
    return orjson.dumps(np.ascontiguousarray(row), option=orjson.OPT_SERIALIZE_NUMPY)


def base64_row(row: Vectors) -> bytes:
    """A JSON string: base64 of little-endian float32."""
    return b'"%b"' % base64.b64encode(row.astype("<f4").tobytes())


async def join_rows(rows: Sequence[T] | Vectors, render: Callable[[int, T], bytes]) -> bytes:
    """A JSON list of `render(index, row)`."""
    parts: list[bytes] = []
    for index, row in enumerate(rows):
        parts.append(render(index, row))
        if index % _SLICE_ROWS == _SLICE_ROWS - 1:
            await asyncio.sleep(0)
    return b"[%b]" % b",".join(parts)
