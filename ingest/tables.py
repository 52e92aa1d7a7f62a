"""Ruled tables, found from the lines drawn on a page. Pure functions over points."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ingest.order import Interval
from ingest.parsed import Table
from ragplane.core.schema import BBox

_TOLERANCE_POINTS = 2.0
_MIN_RULE_POINTS = 8.0
_IMPLIED_ROWS = 3  # two lines in every cell of a row may be one row of wrapped cells
_IMPLIED_WORDS = 4  # in the mean line of such a row at most
_CELL_WORDS = 100

Place = tuple[int, int]
Rule = tuple[float, float, float, float]  # across (low, high), then along (start, end)


@dataclass(frozen=True, slots=True)
class Word:
    """A word on a page and its box."""

    text: str
    bbox: BBox


def ruled_tables(boxes: Sequence[BBox], words: Sequence[Word]) -> list[Table]:
    """Tables whose cells are bounded by rules.

    `boxes` are the strokes and rectangles drawn on the page. A grid needs two rows, and two cells
    filled beside each other; words go to the cell that holds their centre.
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
    inside = [word for word in words if _holds(xs, ys, word)]
    if _is_frame(_cells(xs, ys, _merged_cells(xs, ys, horizontal, vertical), inside)):
        return None
    implied = _implied_rules(xs, ys, inside)
    ys = sorted(ys + [rule.y0 for rule in implied])
    merged = _merged_cells(xs, ys, horizontal + implied, vertical)
    cells = _cells(xs, ys, merged, inside)
    rows = [tuple(row) for row in cells if any(row)]
    side_by_side = max((sum(map(bool, row)) for row in rows), default=0)
    if len(rows) < 2 or side_by_side < 2:
        return None
    return Table(BBox(xs[0], ys[0], xs[-1], ys[-1]), tuple(rows))


def _implied_rules(xs: Sequence[float], ys: Sequence[float], words: Sequence[Word]) -> list[BBox]:
    """Rules that are left out between rows: each column has as many lines, at the same heights."""
    heights: dict[int, dict[int, list[float]]] = {}
    for word in words:
        row, column = _place(xs, ys, word)
        heights.setdefault(row, {}).setdefault(column, []).append(_middle(word))
    rules: list[BBox] = []
    for columns in heights.values():
        lines = [_positions(values) for values in columns.values()]
        if sum(map(len, columns.values())) > _IMPLIED_WORDS * sum(map(len, lines)):
            continue  # running text in columns
        if len(lines) > 1 and len(lines[0]) >= _IMPLIED_ROWS and all(map(_agree, lines, lines[1:])):
            middles = ((above + below) / 2 for above, below in pairwise(lines[0]))
            rules += [BBox(xs[0], y, xs[-1], y) for y in middles]
    return rules


def _holds(xs: Sequence[float], ys: Sequence[float], word: Word) -> bool:
    row, column = _place(xs, ys, word)
    return 0 <= row < len(ys) - 1 and 0 <= column < len(xs) - 1


def _place(xs: Sequence[float], ys: Sequence[float], word: Word) -> Place:
    """The row and the column that hold the centre of a word, -1 before the first."""
    centre = (word.bbox.x0 + word.bbox.x1) / 2
    return bisect_right(ys, _middle(word)) - 1, bisect_right(xs, centre) - 1


def _middle(word: Word) -> float:
    return (word.bbox.y0 + word.bbox.y1) / 2


def _agree(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and all(
        abs(a - b) <= _TOLERANCE_POINTS for a, b in zip(one, other, strict=True)
    )


def _is_frame(rows: Sequence[Sequence[str]]) -> bool:
    """Whether most words stand in cells as long as columns of running text: a drawn page frame."""
    words = [len(cell.split()) for row in rows for cell in row]
    return 2 * sum(count for count in words if count > _CELL_WORDS) > sum(words)


def _merged_cells(
    xs: Sequence[float], ys: Sequence[float], horizontal: Sequence[BBox], vertical: Sequence[BBox]
) -> dict[Place, Place]:
    """The top left place of the cell that each (row, column) of the grid belongs to.

    Two places are one cell where no rule runs between them.
    """
    upright = _by_position([(rule.x0, rule.x1, rule.y0, rule.y1) for rule in vertical], xs)
    level = _by_position([(rule.y0, rule.y1, rule.x0, rule.x1) for rule in horizontal], ys)
    owner: dict[Place, Place] = {}
    for row in range(len(ys) - 1):
        for column in range(len(xs) - 1):
            x, y = (xs[column] + xs[column + 1]) / 2, (ys[row] + ys[row + 1]) / 2
            place = row, column
            if column and not _is_covered(upright[column], y):
                place = owner[row, column - 1]
            elif row and not _is_covered(level[row], x):
                place = owner[row - 1, column]
            owner[row, column] = place
    return owner


def _by_position(rules: Sequence[Rule], positions: Sequence[float]) -> list[list[Interval]]:
    """Where rules run along each of the grid's positions."""
    runs: list[list[Interval]] = [[] for _ in positions]
    for low, high, start, end in rules:
        first = bisect_left(positions, low - _TOLERANCE_POINTS)
        for i in range(first, bisect_right(positions, high + _TOLERANCE_POINTS)):
            runs[i].append((start - _TOLERANCE_POINTS, end + _TOLERANCE_POINTS))
    return runs


def _is_covered(runs: Sequence[Interval], middle: float) -> bool:
    return any(start <= middle <= end for start, end in runs)


def _cells(
    xs: Sequence[float], ys: Sequence[float], owner: dict[Place, Place], words: Sequence[Word]
) -> list[list[str]]:
    """Texts row by row. That of a merged cell stands once, at its top left."""
    texts: dict[Place, list[str]] = {}
    for word in words:
        texts.setdefault(owner[_place(xs, ys, word)], []).append(word.text)
    return [
        [" ".join(texts.get((row, column), ())) for column in range(len(xs) - 1)]
        for row in range(len(ys) - 1)
    ]


def _positions(values: Sequence[float]) -> list[float]:
    """Distinct positions, those within the tolerance merged."""
    distinct: list[float] = []
    for value in sorted(values):
        if not distinct or value - distinct[-1] > _TOLERANCE_POINTS:
            distinct.append(value)
    return distinct
