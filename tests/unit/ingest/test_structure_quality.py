"""Order, headings, furniture and tables on generated pages whose truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import pymupdf
import pytest

from ingest.arrange import arranged
from ingest.layout import blocks_of_pages
from ingest.parsed import Line, RawPage
from ingest.tables import Word, ruled_tables
from ragplane.core.schema import BBox, Page, PageSignals
from tests.unit.ingest.measure import adjacent_pairs_kept, cells_f1
from tests.unit.ingest.pages import PageTruth, Style, document

SIGNALS = PageSignals(0, 0, 0.0, 0.0, 0)
FLAGS = pymupdf.TEXTFLAGS_DICT & ~pymupdf.TEXT_PRESERVE_IMAGES
Tables = Literal["none", "ruled", "unruled"]


class Read(NamedTuple):
    """A page as written and as read."""

    truth: PageTruth
    page: Page


def lines_of(page: Any) -> Iterator[Line]:
    for block in page.get_text("dict", flags=FLAGS)["blocks"]:
        for line in block.get("lines", []):
            spans = line["spans"]
            text = "".join(span["text"] for span in spans)
            size = max(span["size"] for span in spans)
            bold = all(span["flags"] & pymupdf.TEXT_FONT_BOLD for span in spans)
            yield Line(text, BBox(*line["bbox"]), size, bold=bold)


def raw_page(page: Any) -> RawPage:
    boxes = [BBox(*drawing["rect"]) for drawing in page.get_cdrawings()]
    words = [Word(word[4], BBox(*word[:4])) for word in page.get_text("words")]
    width, height = page.rect.width, page.rect.height
    found = arranged(list(lines_of(page)), ruled_tables(boxes, words), width)
    return RawPage(
        *(page.number + 1, width, height, 0, "text", "a test", SIGNALS, 0.0),
        paragraphs=found[0],
        tables=found[1],
    )


def reads(columns: int, tables: Tables) -> list[Read]:
    pages: list[Read] = []
    for seed, size in enumerate((8.0, 9.5) if columns == 3 else (9.0, 12.0)):
        style = Style(columns=columns, size_points=size)
        content, truths = document(100 * columns + seed, pages=3, style=style, tables=tables)
        with pymupdf.open("pdf", content) as pdf:
            read = blocks_of_pages([raw_page(page) for page in pdf])
        pages += map(Read, truths, read)
    return pages


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("| ").split(" | ")]


def share(results: list[bool]) -> float:
    return sum(results) / len(results)


def as_encoded(text: str) -> str:
    """The base fonts hold no curly quotes."""
    return text.replace("“", "·").replace("”", "·")


@pytest.mark.parametrize("tables", ["none", "ruled", "unruled"])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_words_headings_and_cells_are_where_they_were(columns: int, tables: Tables) -> None:
    """Behaviours 12 and 13: the floors of the issue."""
    pairs, heads, furniture, tabled = [], [], [], []
    for truth, page in reads(columns, tables):
        words = " ".join(
            " ".join(cells(block.text)) if block.kind == "table_row" else block.text
            for block in page.blocks
        )
        pairs.append(adjacent_pairs_kept(as_encoded(truth.text), words))
        read = [block.text for block in page.blocks if block.kind == "heading"]
        heads += [item.text in read for item in truth.of("heading")]
        furniture += [item.text not in words for item in truth.of("furniture")]
        rows = [cells(block.text) for block in page.blocks if block.kind == "table_row"]
        expected = [row for item in truth.of("table") for row in item.rows]
        tabled.append(cells_f1(expected, rows) if expected or rows else 1.0)
    assert min(pairs) >= 0.99
    assert share(heads) == 1.0
    assert share(furniture) >= 0.95
    assert sum(tabled) / len(tabled) >= (0.85 if tables == "unruled" else 0.95)
