"""Places on a page laid for reading, as places on the page that a viewer shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ingest.parsed import RawPage
from ingest.pdf.geometry import Matrix, multiplied, transformed, turn_matrix
from ragplane.core.schema import Block

Size = tuple[float, float]


def turned_size(width: float, height: float, turn: int) -> Size:
    """Width and height of a page after some quarter turns, in degrees."""
    return (height, width) if turn % 180 else (width, height)


def as_shown(blocks: Sequence[Block], raw: RawPage) -> tuple[Block, ...]:
    """The blocks of a page with their boxes as they stand on the page before it was laid."""
    if not raw.turn and not raw.skew_degrees:
        return tuple(blocks)
    size = raw.width_points, raw.height_points
    back = multiplied(leaning(raw.skew_degrees, size), turn_matrix(-raw.turn % 360, *size))
    return tuple(
        block if block.bbox is None else replace(block, bbox=transformed(block.bbox, back))
        for block in blocks
    )


def leaning(skew_degrees: float, size: Size) -> Matrix:
    """The matrix that turns a page clockwise about its middle."""
    cos, sin = math.cos(math.radians(skew_degrees)), math.sin(math.radians(skew_degrees))
    x, y = size[0] / 2, size[1] / 2
    return cos, sin, -sin, cos, x - cos * x + sin * y, y - sin * x - cos * y
