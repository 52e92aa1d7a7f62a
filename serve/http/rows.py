"""Vectors as JSON. A large answer is written in slices, so that the event loop stays free."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable

from serve.encoder import Vectors

_SLICE_ROWS = 32


def float_row(row: Vectors) -> str:
    """A JSON list; nine digits carry a float32 exactly."""
    return f"[{','.join(map('%.9g'.__mod__, row.tolist()))}]"


def base64_row(row: Vectors) -> str:
    """A JSON string: base64 of little-endian float32."""
    return f'"{base64.b64encode(row.astype("<f4").tobytes()).decode()}"'


async def join_rows(vectors: Vectors, render: Callable[[int, Vectors], str]) -> str:
    """A JSON list of `render(index, vector)`."""
    parts: list[str] = []
    for index, row in enumerate(vectors):
        parts.append(render(index, row))
        if index % _SLICE_ROWS == _SLICE_ROWS - 1:
            await asyncio.sleep(0)
    return f"[{','.join(parts)}]"
