"""Intricate pages: the layout route."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from ingest.parsed import ParsedDocument
from ingest.pdf.base import PageContent, Structure, TableGrid, TextLine, TextSpan
from ingest.pdf.page_text import read_structure
from ingest.tables import Word
from ragplane.core.schema import BBox

MakePdf = Callable[..., bytes]
Read = Callable[..., ParsedDocument]


def five_columns(page: Any) -> None:
    page.insert_text((72, 60), "Stock of the five shops at the end of the year")
    for row in range(30):
        for column in range(5):
            page.insert_text((72 + 95 * column, 100 + 20 * row), f"r{row}c{column} ware")


def test_table_without_rules_takes_the_layout_route_and_loses_no_word(
    make_pdf: MakePdf, read: Read
) -> None:
    """Behaviour 1."""
    [page] = read(make_pdf(five_columns)).pages
    assert page.signals.columns == 5
    assert page.route == "layout"
    assert page.text.startswith("Stock of the five shops")
    for row in range(30):
        for column in range(5):
            assert page.text.count(f"r{row}c{column} ") == 1


class WordsOnly:
    """A page that only knows its words."""

    def words(self) -> list[Word]:
        texts = [("Item", 0, 0), ("Price", 60, 0), ("Lamp", 0, 20), ("12", 60, 20)]
        return [Word(text, BBox(x, y, x + 20, y + 10)) for text, x, y in texts]


def line(text: str, x: float, y: float) -> TextLine:
    box = BBox(x, y, x + 60, y + 10)
    span = TextSpan(text, box, "Helvetica", 10.0, False, False, 0, True)
    return TextLine([span], box)


def test_areas_give_the_order_and_grids_the_tables() -> None:
    content = PageContent(
        [line("second", 300, 100), line("Item Price", 0, 2), line("first", 0, 200)], [], []
    )
    grid = TableGrid(
        BBox(0, 0, 100, 40),
        (
            (BBox(0, 0, 50, 20), BBox(50, 0, 100, 20)),
            (BBox(0, 20, 50, 40), BBox(50, 20, 100, 40)),
        ),
    )
    structure = Structure((BBox(0, 150, 250, 400), BBox(280, 50, 500, 400)), (grid,))
    page: Any = WordsOnly()
    paragraphs, tables = read_structure(page, content, [], 600, structure)
    assert [[found.text for found in paragraph] for paragraph in paragraphs] == [
        ["first"],
        ["second"],
    ]
    assert [table.rows for table in tables] == [(("Item", "Price"), ("Lamp", "12"))]


def test_layout_model_is_loaded_only_when_a_page_asks_for_it() -> None:
    script = (
        "import sys; from ingest.pdf.mupdf import MupdfFile; "
        "assert 'onnxruntime' not in sys.modules, 'loaded'; "
        "import ingest.pdf.mupdf_layout; assert 'onnxruntime' in sys.modules, 'not loaded'"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
