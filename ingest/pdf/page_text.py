"""A page's own text layer, and what was recognised on it, to paragraphs and tables."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.arrange import Paragraph, arranged
from ingest.parsed import Line, Table
from ingest.pdf.base import PageContent, PdfPage, Structure, TableGrid
from ingest.pdf.geometry import Matrix, holds_centre, transformed
from ingest.pdf.lines import layout_line
from ingest.tables import Word, ruled_tables
from ragplane.core.schema import BBox

_FEW_SHAPES = 3  # fewer bound no table
_MANY_SHAPES = 2000  # beyond this a page is a drawing, not a form with rules

PageText = tuple[tuple[Paragraph, ...], tuple[Table, ...]]
"""Paragraphs in reading order, and tables."""


def read_text(
    page: PdfPage,
    content: PageContent,
    recognised: Sequence[Line],
    width: float,
    matrix: Matrix | None = None,
) -> PageText:
    """By our own functions; `recognised` are lines of scanned regions, to be put in their place.

    `width` of the upright page in points; `matrix` is what `content` was turned with, if it was.
    """
    lines = [layout_line(line) for line in content.lines]
    return arranged([*lines, *recognised], _ruled(page, content, matrix), width)


def read_structure(
    page: PdfPage,
    content: PageContent,
    recognised: Sequence[Line],
    width: float,
    structure: Structure,
) -> PageText:
    """Area by area, as a layout model found them, with the tables that it found."""
    words = page.words()
    tables = [table for grid in structure.tables if (table := _filled(grid, words))]
    lines = [*map(layout_line, content.lines), *recognised]
    free = [line for line in lines if not any(holds_centre(t.bbox, line.bbox) for t in tables)]
    areas: dict[int, list[Line]] = {}
    for line in free:
        areas.setdefault(_nearest(structure.areas, line.bbox), []).append(line)
    paragraphs: list[Paragraph] = []
    for index in sorted(areas):
        found, aligned = arranged(areas[index], (), width)
        paragraphs.extend(found)
        tables.extend(aligned)
    return tuple(paragraphs), tuple(tables)


def _ruled(page: PdfPage, content: PageContent, matrix: Matrix | None) -> list[Table]:
    boxes = [shape.bbox for shape in content.shapes if shape.straight]
    if not _FEW_SHAPES <= len(boxes) <= _MANY_SHAPES:
        return []
    words = page.words()
    if matrix is not None:
        words = [Word(word.text, transformed(word.bbox, matrix)) for word in words]
    return ruled_tables(boxes, words)


def _filled(grid: TableGrid, words: Sequence[Word]) -> Table | None:
    """The table with the words of its cells; None for less than two rows and columns of words."""
    rows = tuple(tuple(_cell(cell, words) for cell in row) for row in grid.rows)
    rows = tuple(row for row in rows if any(row))
    filled = sum(map(any, zip(*rows, strict=True))) if rows else 0
    return Table(grid.bbox, rows) if len(rows) >= 2 and filled >= 2 else None


def _cell(cell: BBox | None, words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words if cell and holds_centre(cell, word.bbox))


def _nearest(areas: Sequence[BBox], box: BBox) -> int:
    """The index of the area that holds the centre of `box`, or is next to it; 0 without any."""
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2

    def distance(index: int) -> float:
        area = areas[index]
        return max(area.x0 - x, x - area.x1, 0.0) + max(area.y0 - y, y - area.y1, 0.0)

    return min(range(len(areas)), key=distance, default=0)
