"""Code: monospaced lines with their breaks, indentation and blank lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ingest.parsed import Line

_BLANK_LINES = 3.0  # line heights; code that goes on after a larger gap is another listing


def code_text(lines: Sequence[Line]) -> str:
    """The lines with the indentation and the blank lines that their boxes show."""
    widths = [(line.bbox.x1 - line.bbox.x0) / len(line.text) for line in lines if line.text.strip()]
    width = median(widths) if widths else 0.0
    left = min(line.bbox.x0 for line in lines)
    pitch = _pitch(lines)
    rows: list[str] = []
    for i, line in enumerate(lines):
        if i and pitch:
            rows += [""] * (round((line.bbox.y0 - lines[i - 1].bbox.y0) / pitch) - 1)
        indent = round((line.bbox.x0 - left) / width) if width > 0 else 0
        rows.append(" " * indent + line.text.rstrip())
    return "\n".join(rows)


def with_code_joined(paragraphs: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The paragraphs, with code that only a blank line parts made one."""
    joined: list[list[Line]] = []
    for lines in paragraphs:
        if joined and _is_code(lines) and _is_code(joined[-1]) and _follows(joined[-1], lines):
            joined[-1].extend(lines)
        else:
            joined.append(list(lines))
    return joined


def _is_code(lines: Sequence[Line]) -> bool:
    return all(line.monospaced for line in lines)


def _follows(above: Sequence[Line], below: Sequence[Line]) -> bool:
    gap = below[0].bbox.y0 - above[-1].bbox.y1
    return 0 <= gap < _BLANK_LINES * (below[0].bbox.y1 - below[0].bbox.y0)


def _pitch(lines: Sequence[Line]) -> float:
    """The distance of two lines without a blank one between them, in points."""
    steps = [below.bbox.y0 - above.bbox.y0 for above, below in pairwise(lines)]
    return min((step for step in steps if step > 1), default=0.0)
