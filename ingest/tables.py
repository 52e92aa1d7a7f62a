"""Ruled tables, found from the lines drawn on a page. Pure functions over points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ingest.parsed import Table
from ragplane.core.schema import BBox

_TOLERANCE_POINTS = 2.0
_MIN_RULE_POINTS = 8.0


@dataclass(frozen=True, slots=True)
class Word:
    """A word on a page and its box."""

    text: str
    bbox: BBox


def ruled_tables(boxes: Sequence[BBox], words: Sequence[Word]) -> list[Table]:
    """Tables whose cells are bounded by rules.

    `boxes` are the strokes and rectangles drawn on the page. A grid needs two rows and two
    columns; words go to the cell that holds their centre.
    """
    rules = [edge for box in boxes for edge in _edges(box)]
    tables = [_grid(component, words) for component in _components(rules)]
    return [table for table in tables if table is not None]


def _edges(box: BBox) -> list[BBox]:
    """A thin box is one rule; a larger one has four edges."""
    width, height = box.x1 - box.x0, box.y1 - box.y0
    if max(width, height) < _MIN_RULE_POINTS:
        return []
    if min(width, height) <= _TOLERANCE_POINTS:
        return [box]
    return [
        BBox(box.x0, box.y0, box.x1, box.y0),
        BBox(box.x0, box.y1, box.x1, box.y1),
        BBox(box.x0, box.y0, box.x0, box.y1),
        BBox(box.x1, box.y0, box.x1, box.y1),
    ]


def _components(rules: Sequence[BBox]) -> list[list[BBox]]:
    """Rules that touch each other, directly or through others."""
    finished: list[list[BBox]] = []
    components: list[tuple[BBox, list[BBox]]] = []
    for rule in sorted(rules, key=lambda rule: (rule.y0, rule.x0)):
        bounds, members = rule, [rule]
        apart = []
        for other_bounds, other in components:
            if _touch(bounds, other_bounds):
                bounds, members = _union(bounds, other_bounds), other + members
            elif other_bounds.y1 + _TOLERANCE_POINTS < rule.y0:
                finished.append(other)  # every further rule lies lower still
            else:
                apart.append((other_bounds, other))
        components = [*apart, (bounds, members)]
    return finished + [members for _, members in components]


def _touch(a: BBox, b: BBox) -> bool:
    t = _TOLERANCE_POINTS
    return a.x0 <= b.x1 + t and b.x0 <= a.x1 + t and a.y0 <= b.y1 + t and b.y0 <= a.y1 + t


def _union(a: BBox, b: BBox) -> BBox:
    return BBox(min(a.x0, b.x0), min(a.y0, b.y0), max(a.x1, b.x1), max(a.y1, b.y1))


def _grid(rules: Sequence[BBox], words: Sequence[Word]) -> Table | None:
    horizontal = [rule for rule in rules if rule.x1 - rule.x0 >= rule.y1 - rule.y0]
    vertical = [rule for rule in rules if rule.x1 - rule.x0 < rule.y1 - rule.y0]
    ys = _positions([(rule.y0 + rule.y1) / 2 for rule in horizontal])
    xs = _positions([(rule.x0 + rule.x1) / 2 for rule in vertical])
    if len(ys) < 3 or len(xs) < 3:
        return None
    rows = []
    for top, bottom in pairwise(ys):
        cells = [_cell(words, BBox(left, top, right, bottom)) for left, right in pairwise(xs)]
        if any(cells):
            rows.append(tuple(cells))
    filled_columns = sum(any(row[column] for row in rows) for column in range(len(xs) - 1))
    if len(rows) < 2 or filled_columns < 2:
        return None
    return Table(BBox(xs[0], ys[0], xs[-1], ys[-1]), tuple(rows))


def _positions(values: Sequence[float]) -> list[float]:
    """Distinct positions, those within the tolerance merged."""
    distinct: list[float] = []
    for value in sorted(values):
        if not distinct or value - distinct[-1] > _TOLERANCE_POINTS:
            distinct.append(value)
    return distinct


def _cell(words: Sequence[Word], cell: BBox) -> str:
    inside = [word for word in words if _holds(cell, word.bbox)]
    return " ".join(word.text for word in inside)


def _holds(cell: BBox, box: BBox) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return cell.x0 <= x < cell.x1 and cell.y0 <= y < cell.y1
