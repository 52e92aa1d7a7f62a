"""Reading order of boxes on a page: a recursive XY-cut (Nagy and Seth 1984) that prefers columns.

A gap that runs through the whole height splits columns. Where a wide heading bridges the gap, the
page is cut into horizontal bands, and neighbouring bands that share the gap stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ragplane.core.schema import BBox

T = TypeVar("T")

_MIN_GUTTER_POINTS = 8.0
_MIN_COLUMN_SHARE = 0.2


def reading_order(items: Sequence[T], box: Callable[[T], BBox], page_width: float) -> list[T]:
    """`items` from the first read to the last. Boxes are in points."""
    if len(items) <= 1:
        return list(items)
    gutter = _gutter([box(item) for item in items], page_width)
    if gutter is not None:
        left = [item for item in items if box(item).x1 <= gutter]
        right = [item for item in items if box(item).x1 > gutter]
        return reading_order(left, box, page_width) + reading_order(right, box, page_width)
    groups = _band_groups(_bands(items, box), box, page_width)
    if len(groups) == 1:
        return sorted(items, key=lambda item: _from_top(box(item)))
    return [item for group in groups for item in reading_order(group, box, page_width)]


def _gutter(boxes: Sequence[BBox], page_width: float) -> float | None:
    """The x in the middle of the widest vertical gap between two columns; None without one."""
    best: tuple[float, float] | None = None
    reach = -1.0
    ordered = sorted(boxes, key=lambda box: box.x0)
    left_edge, right_edge = ordered[0].x0, max(box.x1 for box in boxes)
    for box in ordered:
        gap = box.x0 - reach
        wide_enough = min(reach - left_edge, right_edge - box.x0) >= _MIN_COLUMN_SHARE * page_width
        if reach >= 0 and gap >= _MIN_GUTTER_POINTS and wide_enough:
            best = max(best or (0.0, 0.0), (gap, reach + gap / 2))
        reach = max(reach, box.x1)
    return best[1] if best else None


def _from_top(box: BBox) -> tuple[float, ...]:
    """Sorts downwards, then to the right; no two different boxes are equal."""
    return box.y0, box.x0, box.y1, box.x1


def _bands(items: Sequence[T], box: Callable[[T], BBox]) -> list[list[T]]:
    """Groups of items whose vertical extents overlap, from top to bottom."""
    bands: list[list[T]] = []
    reach = float("-inf")
    for item in sorted(items, key=lambda item: _from_top(box(item))):
        height = box(item).y1 - box(item).y0
        if bands and box(item).y0 < reach - 0.25 * height:
            bands[-1].append(item)
        else:
            bands.append([item])
        reach = max(reach, box(item).y1)
    return bands


def _band_groups(
    bands: Sequence[list[T]], box: Callable[[T], BBox], page_width: float
) -> list[list[T]]:
    """Neighbouring bands joined for as long as one gutter runs through all of them."""
    groups: list[list[T]] = []
    for band in bands:
        joined = [*groups[-1], *band] if groups else band
        if groups and _gutter([box(item) for item in joined], page_width) is not None:
            groups[-1] = joined
        else:
            groups.append(list(band))
    return groups
