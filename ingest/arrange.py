"""From the pieces of text on a page to paragraphs in reading order and tables.

The same for every engine that gives text with boxes: PDF libraries and OCR.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ingest.aligned import aligned_tables
from ingest.order import column_regions
from ingest.parsed import Line, Table
from ingest.rows import Row, is_upended, joined_row, rows_of
from ragplane.core.schema import BBox

_PROSE_CHARACTERS = 18  # in the median line of a column of running text
_MOST_UPENDED = 0.3  # of the text; where more runs down the page, that is how it is written
_OCR_MARGIN = 0.15  # of its height: what a recognised box is wider than its text on either side
_SENTENCE_ENDS = (".", "!", "?", "…", ":", "。", "！", "？", "”", "»", '"')

Paragraph = tuple[Line, ...]


def arranged(
    lines: Sequence[Line], ruled: Sequence[Table], width_points: float
) -> tuple[tuple[Paragraph, ...], tuple[Table, ...]]:
    """Paragraphs in reading order, and the tables: those `ruled` and those found by their gaps.

    `lines` are pieces of text in any order; pieces with a wide gap between them must be apart, as
    cells are. Those inside a ruled table are its own and left out. The few that run up the page, in
    a margin or at an axis, come last.
    """
    written = [line for line in lines if line.text.strip() and not _is_inside(line, ruled)]
    aside = _aside(written)
    free = [line for line in written if line not in aside] if aside else written
    rows = rows_of(free)
    if all(len(row.lines) == 1 for row in rows):  # nothing stands beside anything
        return (*_paragraphs(rows), *((line,) for line in aside)), tuple(ruled)
    tables = list(ruled)
    used: set[int] = set()
    for region in column_regions(free, _box, width_points, _are_columns):
        for table, members in aligned_tables(region):
            tables.append(table)
            used.update(map(id, members))
    rest = [line for line in free if id(line) not in used]
    paragraphs: list[Paragraph] = []
    for region in column_regions(rest, _box, width_points):
        paragraphs.extend(_paragraphs(rows_of(region)))
    return (*paragraphs, *((line,) for line in aside)), tuple(tables)


def _aside(lines: Sequence[Line]) -> list[Line]:
    """The lines that run up the page where most of it is level, from left to right."""
    upended = sorted(filter(is_upended, lines), key=lambda line: line.bbox)
    few = sum(len(line.text) for line in upended)
    return upended if few <= _MOST_UPENDED * sum(len(line.text) for line in lines) else []


def _box(line: Line) -> BBox:
    """Where the text of a line is; boxes of recognised lines are wider, and would close gutters."""
    box = line.bbox
    if line.confidence is None:
        return box
    margin = _OCR_MARGIN * (box.y1 - box.y0)
    return BBox(box.x0 + margin, box.y0, box.x1 - margin, box.y1)


def _is_inside(line: Line, tables: Sequence[Table]) -> bool:
    x, y = (line.bbox.x0 + line.bbox.x1) / 2, (line.bbox.y0 + line.bbox.y1) / 2
    return any(
        table.bbox.x0 <= x <= table.bbox.x1 and table.bbox.y0 <= y <= table.bbox.y1
        for table in tables
    )


def _are_columns(left: list[Line], right: list[Line]) -> bool:
    """Whether a gutter parts running text, and not the cells of a table."""
    sides = (left, right)
    if all(median(len(line.text) for line in side) >= _PROSE_CHARACTERS for side in sides):
        return True
    tops = [{round(line.bbox.y1) for line in side} for side in sides]
    shared = sum(any(y + d in tops[1] for d in (-1, 0, 1)) for y in tops[0])
    return shared < 0.5 * min(map(len, tops))


def _paragraphs(rows: Sequence[Row]) -> list[Paragraph]:
    """Rows of one region parted by wide gaps, changes of style and indents."""
    lines = [joined_row(row) for row in rows]
    gaps = sorted(below.bbox.y0 - above.bbox.y1 for above, below in pairwise(lines))
    usual = gaps[len(gaps) // 4] if gaps else 0.0
    left = min((line.bbox.x0 for line in lines), default=0.0)
    paragraphs: list[list[Line]] = []
    for line in lines:
        if paragraphs and _goes_on(paragraphs[-1][-1], line, usual, left):
            paragraphs[-1].append(line)
        else:
            paragraphs.append([line])
    return [tuple(paragraph) for paragraph in paragraphs]


def _goes_on(above: Line, line: Line, usual_gap: float, left: float) -> bool:
    size = min(above.font_size_points, line.font_size_points)
    gap = line.bbox.y0 - above.bbox.y1
    if not _are_alike(above, line) or gap > min(usual_gap, 0.6 * size) + 0.35 * size:
        return False
    if line.monospaced:
        return True
    indent = line.bbox.x0 - left
    starts = 0.8 * size < indent < 4 * size and above.bbox.x0 - left < 0.4 * size
    return not (starts and above.text.rstrip().endswith(_SENTENCE_ENDS))


def _are_alike(above: Line, line: Line) -> bool:
    if line.confidence is not None:  # the height of a recognised line is a rough measure
        return 0.75 < line.font_size_points / max(above.font_size_points, 0.1) < 1.33
    return (
        abs(above.font_size_points - line.font_size_points) < 0.6
        and above.bold == line.bold
        and above.monospaced == line.monospaced
    )
