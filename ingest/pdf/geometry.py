"""Boxes: turning, holding, covering. Pure functions over points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ragplane.core.schema import BBox

Matrix = tuple[float, float, float, float, float, float]
"""x' = a*x + c*y + e and y' = b*x + d*y + f."""


def transformed(box: Sequence[float], matrix: Matrix) -> BBox:
    """The upright box around `box` (x0, y0, x1, y1) after `matrix`."""
    a, b, c, d, e, f = matrix
    xs = [a * x + c * y + e for x in (box[0], box[2]) for y in (box[1], box[3])]
    ys = [b * x + d * y + f for x in (box[0], box[2]) for y in (box[1], box[3])]
    return BBox(min(xs), min(ys), max(xs), max(ys))


def multiplied(inner: Matrix, outer: Matrix) -> Matrix:
    """The matrix that applies `inner` first and `outer` after it."""
    a, b, c, d, e, f = inner
    g, h, i, j, k, m = outer
    return (
        a * g + b * i,
        a * h + b * j,
        c * g + d * i,
        c * h + d * j,
        e * g + f * i + k,
        e * h + f * j + m,
    )


def turn_matrix(turn: int, width: float, height: float) -> Matrix:
    """The matrix of a page of this size in points that is turned clockwise by `turn` degrees."""
    matrices: dict[int, Matrix] = {
        0: (1, 0, 0, 1, 0, 0),
        90: (0, 1, -1, 0, height, 0),
        180: (-1, 0, 0, -1, width, height),
        270: (0, -1, 1, 0, 0, width),
    }
    return matrices[turn]


def holds_centre(outer: BBox, box: BBox) -> bool:
    """Whether the centre of `box` lies inside `outer`."""
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return outer.x0 <= x <= outer.x1 and outer.y0 <= y <= outer.y1


def area(box: BBox) -> float:
    """Square points; 0 for a box turned inside out."""
    return max(0.0, box.x1 - box.x0) * max(0.0, box.y1 - box.y0)


def intersection(a: BBox, b: BBox) -> BBox:
    """What both boxes cover; its area is 0 where they are apart."""
    return BBox(max(a.x0, b.x0), max(a.y0, b.y0), min(a.x1, b.x1), min(a.y1, b.y1))


def bounds(boxes: Iterable[BBox]) -> BBox:
    """The box around all of `boxes`, of which there is one at least."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return BBox(min(x0), min(y0), max(x1), max(y1))


def holding(outers: Sequence[BBox], boxes: Sequence[BBox]) -> NDArray[np.bool_]:
    """Which outer boxes hold the centre of which boxes: bool [len(boxes), len(outers)]."""
    edges = np.asarray(outers, dtype=np.float64).reshape(-1, 4)
    inner = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    x = ((inner[:, 0] + inner[:, 2]) / 2)[:, None]
    y = ((inner[:, 1] + inner[:, 3]) / 2)[:, None]
    return (edges[:, 0] <= x) & (x <= edges[:, 2]) & (edges[:, 1] <= y) & (y <= edges[:, 3])


def coverage(boxes: Sequence[BBox], page: BBox) -> float:
    """Share of the page under the boxes, 0 to 1, overlaps counted once (to about 1 %)."""
    if not boxes or area(page) <= 0:
        return 0.0
    cells = np.zeros((100, 100), dtype=bool)
    scale = np.array([100 / (page.x1 - page.x0), 100 / (page.y1 - page.y0)] * 2)
    origin = np.array([page.x0, page.y0] * 2)
    edges = np.clip((np.asarray(boxes) - origin) * scale, 0, 100)
    for x0, y0, x1, y1 in np.rint(edges).astype(int):
        cells[y0:y1, x0:x1] = True
    exact = min(1.0, sum(area(intersection(box, page)) for box in boxes) / area(page))
    return min(exact, float(cells.mean())) if cells.any() else exact
