"""Pieces of text on one baseline: found, put in order and joined to lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from ingest.bidi import is_rtl
from ingest.parsed import Line
from ragplane.core.schema import BBox

_SHARED_HEIGHT = 0.5  # of the lower of two pieces on one baseline
_MOST_TIMES_TALLER = 3.0  # a taller piece stands beside several rows, and in none
_ROWS_BACK = 2  # such a piece may stand between two pieces of one row
_UPENDED = 2.0  # times as high as wide
_SPACE = 0.15  # of the font size: a smaller gap is inside a word


@dataclass(slots=True)
class Row:
    """Pieces on one baseline, from left to right."""

    lines: list[Line]
    y0: float
    y1: float

    @property
    def height(self) -> float:
        """From the highest to the lowest piece, in points."""
        return self.y1 - self.y0

    def takes(self, box: BBox) -> bool:
        """Whether a piece of text with this box stands on the baseline."""
        shared = min(self.y1, box.y1) - max(self.y0, box.y0)
        low, high = sorted((self.height, box.y1 - box.y0))
        return shared > _SHARED_HEIGHT * low and high <= _MOST_TIMES_TALLER * low


def is_upended(line: Line) -> bool:
    """Whether a line runs up or down the page."""
    box = line.bbox
    return len(line.text.strip()) > 3 and box.y1 - box.y0 > _UPENDED * (box.x1 - box.x0)


def rows_of(lines: Sequence[Line]) -> list[Row]:
    """The rows of a region without gutters, from top to bottom."""
    rows: list[Row] = []
    for line in sorted(lines, key=lambda line: (line.bbox.y0 + line.bbox.y1, line.bbox.x0)):
        box = line.bbox
        row = next((row for row in rows[: -_ROWS_BACK - 1 : -1] if row.takes(box)), None)
        if row is None:
            rows.append(Row([line], box.y0, box.y1))
        else:
            row.lines.append(line)
            row.y0, row.y1 = min(row.y0, box.y0), max(row.y1, box.y1)
    for row in rows:
        row.lines.sort(key=lambda line: line.bbox.x0)
    return rows


def joined_row(row: Row) -> Line:
    """The pieces of a row as one line; right-to-left ones are read from the right."""
    if len(row.lines) == 1:
        return row.lines[0]
    lines = _in_reading_order(row.lines)
    text = lines[0].text
    for before, line in pairwise(lines):
        text += _between(before, line) + line.text
    confidences = [line.confidence for line in lines if line.confidence is not None]
    return Line(
        text=text,
        bbox=bounds(lines),
        font_size_points=max(line.font_size_points for line in lines),
        bold=all(line.bold for line in lines),
        monospaced=all(line.monospaced for line in lines),
        confidence=min(confidences) if confidences else None,
    )


def bounds(lines: Sequence[Line]) -> BBox:
    """The box around all of `lines`, of which there is one at least."""
    x0, y0, x1, y1 = zip(*(line.bbox for line in lines), strict=True)
    return BBox(min(x0), min(y0), max(x1), max(y1))


def _in_reading_order(lines: Sequence[Line]) -> list[Line]:
    """Left to right; in a right-to-left row from the right, but Latin runs stay as they are."""
    if not is_rtl(" ".join(line.text for line in lines)):
        return list(lines)
    ordered: list[Line] = []
    for is_rtl_run, run in groupby(reversed(lines), key=lambda line: is_rtl(line.text)):
        pieces = list(run)
        has_words = not is_rtl_run and any(char.isalpha() for one in pieces for char in one.text)
        ordered += pieces[::-1] if has_words else pieces
    return ordered


def _between(before: Line, line: Line) -> str:
    gap = max(line.bbox.x0 - before.bbox.x1, before.bbox.x0 - line.bbox.x1)
    if before.monospaced and line.monospaced:
        width = (before.bbox.x1 - before.bbox.x0) / max(1, len(before.text))
        return " " * max(1, round(gap / width)) if width > 0 else " "
    apart = gap >= _SPACE * line.font_size_points
    return " " if apart and not before.text.endswith(" ") and line.text[:1] != " " else ""
