"""Tables without rules: rows of pieces that leave the same gaps free, row after row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean, median

from ingest.bidi import is_rtl
from ingest.joining import join_texts
from ingest.order import Interval
from ingest.parsed import Line, Table
from ingest.rows import Row, bounds, joined_row, rows_of

_ROW_GAP = 2.2  # line heights; a larger gap ends a table
_MIN_GAP = 0.5  # line heights between two columns
_MIN_ROWS = 3
_HEAD_ROWS = 2  # that may bridge columns
_PROSE_WORDS = 3.5  # in the mean cell of a column of running text
_PROSE_FILL = 0.75  # of the column's width that most of its lines take
_NUMERIC_SHARE = 0.6
_NUMBER = re.compile(r"[-+(]?[$€£¥]?\s?\d[\d\s.,:/%°()–-]*\s?[\w%$€£¥°]{0,4}\)?|[-–—]|n/?a", re.I)
_LIST_MARK = re.compile(r"[•◦▪‣·–*-]|\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})[.)]?|\[\d+\]")
_LEADERS = re.compile(r"(?:\.\s?){4,}|…{2,}")
_INDEX_ENTRY = re.compile(r".*[^\W\d_],? \d+(?:(?:, ?|[-–])\d+)*")


@dataclass(slots=True)
class _Run:
    """Rows in which each piece stands in one of the same columns."""

    rows: list[Row] = field(default_factory=list)
    columns: list[Interval] = field(default_factory=list)


def aligned_tables(lines: Sequence[Line]) -> list[tuple[Table, list[Line]]]:
    """The tables of a region, each with the lines that it is made of."""
    found = []
    rows = rows_of([line for line in lines if not line.monospaced])
    for run, heads in _runs(rows):
        if _is_table(run):
            used = [line for row in (*heads, *run.rows) for line in row.lines]
            found.append((Table(bounds(used), _cells(run, heads)), used))
    return found


def _runs(rows: Sequence[Row]) -> list[tuple[_Run, list[Row]]]:
    """Runs of rows with gaps in common, each with the rows above it that bridge some of them."""
    runs: list[tuple[_Run, list[Row]]] = []
    heads: list[Row] = []
    run = _Run()
    for row in rows:
        if run.rows and not _is_near(run.rows[-1], row):
            runs.append((_trimmed(run), heads))
            heads, run = [], _Run()
        if _extend(run, row):
            continue
        is_head = 0 < len(run.rows) <= _HEAD_ROWS and _is_parted(run.rows, row)
        if not is_head:
            runs.append((_trimmed(run), heads))
        heads, run = run.rows if is_head else [], _Run()
        _extend(run, row)
    return [*runs, (_trimmed(run), heads)]


def _is_parted(above: Sequence[Row], row: Row) -> bool:
    """Whether a row has more pieces than those above it, which may be a head over its columns."""
    return len(row.lines) > max(len(one.lines) for one in above)


def _is_near(above: Row, below: Row) -> bool:
    return below.y0 - above.y1 <= _ROW_GAP * min(above.height, below.height)


def _extend(run: _Run, row: Row) -> bool:
    """Add a row if none of its pieces bridges columns and no column takes two of its pieces."""
    if not run.rows and len(row.lines) < 2:
        return True
    gap = _MIN_GAP * row.height
    columns = list(run.columns)
    touched: set[int] = set()
    for line in row.lines:
        near = [i for i, (x0, x1) in enumerate(columns) if _meet(line, x0 - gap, x1 + gap)]
        if len(near) > 1 or touched.intersection(near):
            return False
        if near:
            x0, x1 = columns[near[0]]
            columns[near[0]] = min(x0, line.bbox.x0), max(x1, line.bbox.x1)
            touched.add(near[0])
        else:
            columns.append((line.bbox.x0, line.bbox.x1))
            touched.add(len(columns) - 1)
    ordered = sorted(columns)
    if any(after - before < gap for (_, before), (after, _) in pairwise(ordered)):
        return False
    run.columns = ordered
    run.rows.append(row)
    return True


def _meet(line: Line, x0: float, x1: float) -> bool:
    return line.bbox.x0 < x1 and line.bbox.x1 > x0


def _trimmed(run: _Run) -> _Run:
    """Without single pieces below the last full row that stand further off than its rows do."""
    gaps = [below.y0 - above.y1 for above, below in pairwise(run.rows)]
    usual = median(gaps) if gaps else 0.0
    rows = list(run.rows)
    while len(rows) > 1 and len(rows[-1].lines) < 2:
        is_continued = rows[-1].y0 - rows[-2].y1 < usual - 1
        if is_continued and len(rows[-2].lines) > 1:
            break
        rows.pop()
    return _Run(rows, run.columns)


def _is_table(run: _Run) -> bool:
    full = [row for row in run.rows if len(row.lines) > 1]
    if len(full) < (_MIN_ROWS if len(run.columns) < 3 else 2) or 2 * len(full) < len(run.rows):
        return False
    columns = [_in_column(run, column) for column in run.columns]
    prose = sum(
        _is_prose(lines, column) for lines, column in zip(columns, run.columns, strict=True)
    )
    if prose > len(columns) - 2 + (len(columns) == 2) or _is_listing(columns):
        return False
    return len(columns) > 2 or _is_pair_table(full, columns)


def _in_column(run: _Run, column: Interval) -> list[Line]:
    return [line for row in run.rows for line in row.lines if _meet(line, *column)]


def _is_prose(lines: Sequence[Line], column: Interval) -> bool:
    """Whether a column holds running text: many words, lines as wide as the column."""
    words = mean(len(line.text.split()) for line in lines)
    width = column[1] - column[0]
    filled = [line for line in lines if line.bbox.x1 - line.bbox.x0 > _PROSE_FILL * width]
    return words > _PROSE_WORDS and 2 * len(filled) >= len(lines) and len(lines) > 2


def _is_listing(columns: Sequence[Sequence[Line]]) -> bool:
    """Lists with marks, tables of contents and indexes have columns, too."""
    if len(columns) == 2 and all(_LIST_MARK.fullmatch(line.text.strip()) for line in columns[0]):
        return True
    lines = [line.text.strip() for column in columns for line in column]
    leaders = sum(bool(_LEADERS.search(line)) for line in lines)
    entries = sum(bool(_INDEX_ENTRY.fullmatch(line)) for line in lines)
    return leaders >= 2 or 2 * entries > len(lines)


def _is_pair_table(rows: Sequence[Row], columns: Sequence[Sequence[Line]]) -> bool:
    """Two columns may be two addresses. Numbers, a bold head, keys or wide rows make a table."""
    bold = [all(line.bold for line in row.lines) for row in rows]
    keys = [line.text.rstrip().endswith(":") for line in columns[0]]
    gaps = [below.y0 - above.y1 for above, below in pairwise(rows)]
    return (
        any(_is_numeric(column) for column in columns)
        or (bold[0] and not any(bold[1:]))
        or all(keys)
        or min(gaps) > 0.4 * median(row.height for row in rows)
    )


def _is_numeric(lines: Sequence[Line]) -> bool:
    numbers = sum(bool(_NUMBER.fullmatch(line.text.strip())) for line in lines[1:])
    return numbers >= _NUMERIC_SHARE * max(1, len(lines) - 1)


def _cells(run: _Run, heads: Sequence[Row]) -> tuple[tuple[str, ...], ...]:
    most = max(len(row.lines) for row in run.rows)
    gaps = [b.y0 - a.y1 for a, b in pairwise(run.rows) if len(b.lines) == most]
    usual_gap = median(gaps) if gaps else 0.0
    groups: list[list[Row]] = []
    for row in run.rows:
        if groups and _continues(groups[-1][-1], row, run, usual_gap):
            groups[-1].append(row)
        else:
            groups.append([row])
    rows = [_row_cells([head], run.columns) for head in heads]
    rows += [_row_cells(group, run.columns) for group in groups]
    text = " ".join(cell for row in rows for cell in row)
    return tuple(row[::-1] for row in rows) if is_rtl(text) else tuple(rows)


def _continues(above: Row, row: Row, run: _Run, usual_gap: float) -> bool:
    """Whether a row holds the next lines of cells above it.

    It stands closer than full rows do; where all stand alike, it has no first cell and few others.
    """
    if len(row.lines) == len(run.columns):
        return False
    if row.y0 - above.y1 < usual_gap - 0.35 * row.height:
        return True
    first_is_empty = not any(_meet(line, *run.columns[0]) for line in row.lines)
    return (
        first_is_empty
        and 2 * len(row.lines) <= len(run.columns)
        and not _is_numeric([row.lines[0], *row.lines])
    )


def _row_cells(rows: Sequence[Row], columns: Sequence[Interval]) -> tuple[str, ...]:
    """The text of each column. A piece over several columns goes to the first of them."""
    pieces: list[list[str]] = [[] for _ in columns]
    for row in rows:
        placed: dict[int, list[Line]] = {}
        for line in row.lines:
            placed.setdefault(_column_of(line, columns), []).append(line)
        for column, lines in placed.items():
            pieces[column].append(joined_row(Row(lines, row.y0, row.y1)).text)
    return tuple(join_texts(texts, frozenset()) if texts else "" for texts in pieces)


def _column_of(line: Line, columns: Sequence[Interval]) -> int:
    for i, column in enumerate(columns):
        if _meet(line, *column):
            return i
    centre = (line.bbox.x0 + line.bbox.x1) / 2
    return min(range(len(columns)), key=lambda i: abs(sum(columns[i]) / 2 - centre))
