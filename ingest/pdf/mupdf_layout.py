"""Areas and tables of an intricate page by PyMuPDF's layout model (ONNX, in its wheel)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ingest.pdf.base import Structure, TableGrid
from ragplane.core.schema import BBox

import_module("pymupdf.layout")  # registers the model, which find_tables then uses


def page_structure(page: Any) -> Structure:
    """Text areas in reading order and the tables with cells; for a page that is not turned."""
    tables = page.find_tables().tables  # takes the model's word for where tables may be
    return Structure(
        areas=tuple(BBox(*area[:4]) for area in page.layout_information or ()),
        tables=tuple(_grid(table) for table in tables),
    )


def _grid(table: Any) -> TableGrid:
    return TableGrid(
        BBox(*table.bbox),
        tuple(tuple(BBox(*cell) if cell else None for cell in row.cells) for row in table.rows),
    )
