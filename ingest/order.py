"""Reading order of boxes on a page: a recursive XY-cut (Nagy and Seth 1984) that prefers columns.

A gap that runs through the whole height splits columns. Where a wide heading bridges the gap, the
page is cut into horizontal bands, and neighbouring bands that share the gap stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from ragplane.core.schema import BBox

T = TypeVar("T")
Interval = tuple[float, float]

_MIN_GUTTER_POINTS = 8.0
_MIN_COLUMN_SHARE = 0.12  # of the page's width; a sidebar may be as narrow


def column_regions(
    items: Sequence[T],
    box: Callable[[T], BBox],
    page_width: float,
    may_part: Callable[[list[T], list[T]], bool] = lambda left, right: True,
) -> list[list[T]]:
    """Regions without a gutter, in reading order, each from top to bottom. Boxes are in points.

    A gutter parts two regions only where `may_part` says so of what stands on its sides.
    """
    if not items:
        return []
    gutter = _gutter(column_intervals([box(item) for item in items]), page_width)
    if gutter is not None:
        left = [item for item in items if box(item).x1 <= gutter]
        right = [item for item in items if box(item).x1 > gutter]
        if may_part(left, right):
            sides = (column_regions(side, box, page_width, may_part) for side in (left, right))
            return [region for regions in sides for region in regions]
        groups = []
    else:
        groups = _band_groups(_bands(items, box), box, page_width)
    if len(groups) <= 1:
        return [sorted(items, key=lambda item: _from_top(box(item)))]
    return _whole_regions([column_regions(group, box, page_width, may_part) for group in groups])


def _whole_regions(parts: Sequence[list[list[T]]]) -> list[list[T]]:
    """Regions of bands from top to bottom; neighbouring ones without columns become one."""
    regions: list[list[T]] = []
    is_open = False
    for part in parts:
        if is_open and len(part) == 1:
            regions[-1].extend(part[0])
        else:
            regions.extend(part)
        is_open = len(part) == 1
    return regions


def column_intervals(
    boxes: Sequence[BBox], gap_points: float = _MIN_GUTTER_POINTS
) -> list[Interval]:
    """What the boxes cover from left to right; nearer than `gap_points` counts as touching."""
    return _united([(box.x0, box.x1) for box in boxes], gap_points)


def _united(intervals: Sequence[Interval], gap_points: float) -> list[Interval]:
    if len(intervals) == 1:
        return list(intervals)
    united: list[Interval] = []
    for start, end in sorted(intervals):
        if united and start - united[-1][1] < gap_points:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((start, end))
    return united


def _gutter(covered: Sequence[Interval], page_width: float) -> float | None:
    """The x in the middle of the widest gap between two columns; None without one."""
    least = _MIN_COLUMN_SHARE * page_width
    best: Interval | None = None
    for (_, before), (after, _) in pairwise(covered):
        wide_enough = min(before - covered[0][0], covered[-1][1] - after) >= least
        if wide_enough and (best is None or after - before > best[1] - best[0]):
            best = before, after
    return (best[0] + best[1]) / 2 if best else None


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
    covered: list[Interval] = []
    for band in bands:
        own = column_intervals([box(item) for item in band])
        joined = _united([*covered, *own], _MIN_GUTTER_POINTS)
        if groups and _gutter(joined, page_width) is not None:
            groups[-1] += band
            covered = joined
        else:
            groups.append(list(band))
            covered = own
    return groups
