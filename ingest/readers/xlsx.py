"""XLSX through openpyxl, read-only: each sheet under its name, its tables apart."""

from __future__ import annotations

import io
import time
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import openpyxl

from ingest.parsed import ParsedDocument
from ingest.readers.base import ReadContext, title_or_name
from ingest.readers.cells import shown
from ingest.readers.flowing import flowing_document
from ingest.readers.regions import Row, grid, regions
from ingest.readers.rows import is_number, table_blocks
from ingest.readers.zipped import local_name, malformed_as, open_zip, xml_root
from ragplane.core.schema import Block, Note

_MIME = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_WORKBOOK = "xl/workbook.xml"
_MAX_ROWS = 1 << 20  # the format's own limit, which a hostile file may claim to pass
_MAX_CELLS = 1_000_000
_MAX_HIDDEN_CHARACTERS = 2000


@dataclass(slots=True)
class _Budget:
    """What may still be read of a workbook. A place is a cell or the lack of one."""

    cells: int
    places: int = 20_000_000
    characters: int = 50_000_000
    notes: list[Note] = field(default_factory=list)

    @property
    def is_spent(self) -> bool:
        return min(self.cells, self.places, self.characters) <= 0


def read_xlsx(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read a workbook as one page. Formulas give the values that were saved with them.

    A hidden sheet is only noted. Past a million cells the rest is left out, with a note.
    Raises StageError `parse` for a broken or inflated file.
    """
    started = time.perf_counter()
    budget = _Budget(_MAX_CELLS)
    with malformed_as("XLSX"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and extensions that hold no text
        with open_zip(content, "XLSX", context.limits) as archive:
            listed = _listed_sheets(archive)
        workbook = openpyxl.load_workbook(
            io.BytesIO(content), read_only=True, data_only=True, keep_links=False
        )
        blocks = [block for sheet in workbook.worksheets for block in _sheet(sheet, budget)]
        title = workbook.properties.title
        if not workbook.sheetnames:
            raise ValueError("the workbook has no sheets")
        if len(workbook.sheetnames) < listed:  # the library passes over a part that is missing
            missing = listed - len(workbook.sheetnames)
            budget.notes.append(Note("truncated", f"{missing} of {listed} sheets are missing"))
    if budget.is_spent:
        budget.notes.append(Note("truncated", "the workbook has too many cells"))
    # A sheet's name says too little for a title.
    title = title or title_or_name(None, context.name)
    return flowing_document(_MIME, blocks, context, started, title, budget.notes)


def _listed_sheets(archive: zipfile.ZipFile) -> int:
    """How many sheets the workbook names; 0 where its main part has an unusual place."""
    if _WORKBOOK not in archive.NameToInfo:
        return 0
    parts = xml_root(archive.read(_WORKBOOK)).iter()
    return sum(1 for part in parts if local_name(part) == "sheet")


def _sheet(sheet: Any, budget: _Budget) -> list[Block]:
    """The sheet's heading and blocks; nothing for an empty one."""
    rows = _rows(sheet, budget)
    blocks = [block for region in regions(rows) for block in _region(region)]
    if not blocks:
        return []
    if sheet.sheet_state != "visible":
        text = "\n".join(block.text for block in blocks)[:_MAX_HIDDEN_CHARACTERS]
        budget.notes.append(Note("hidden", f"sheet {sheet.title}: {text}"))
        return []
    return [Block("heading", sheet.title, level=1), *blocks]


def _rows(sheet: Any, budget: _Budget) -> list[Row]:
    """The rows that hold a value, and their cells as shown, while the budget lasts."""
    sheet.reset_dimensions()  # what a file claims may be too small, or a million empty columns
    rows: list[Row] = []
    for index, row in enumerate(islice(sheet.iter_rows(), _MAX_ROWS)):
        if budget.is_spent:
            break
        if not row:
            continue
        cells = {
            column: text
            for column, cell in enumerate(row)
            if cell.value is not None and (text := shown(cell.value, cell.number_format).strip())
        }
        budget.places -= len(row)
        budget.cells -= len(cells)
        budget.characters -= sum(map(len, cells.values()))
        if cells:
            rows.append((index, cells))
    return rows


def _region(region: Sequence[Row]) -> Iterator[Block]:
    """Lines of a single cell around a table are its title and remarks.

    A single column is a table where numbers stand below its first cell, else text.
    """
    values = [text for _, cells in region[1:] for text in cells.values()]
    first, last = 0, len(region)
    while first < last and len(region[first][1]) == 1:
        first += 1
    while last > first and len(region[last - 1][1]) == 1:
        last -= 1
    if first == last and any(map(is_number, values)):
        first, last = 0, len(region)
    yield from map(_paragraph, region[:first])
    yield from table_blocks(grid(region[first:last]))
    yield from map(_paragraph, region[last:])


def _paragraph(row: Row) -> Block:
    return Block("paragraph", " ".join(" ".join(row[1].values()).split()))
