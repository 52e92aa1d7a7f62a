"""PPTX files."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pptx
import pytest
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Pt

from ingest.parsed import ParsedDocument
from ingest.readers.base import ReadContext, ReadLimits
from ingest.readers.pptx import read_pptx
from ingest.triage import Thresholds
from ragplane.core.errors import StageError
from ragplane.core.schema import Block
from tests.unit.ingest.conftest import FakeOcr
from tests.unit.ingest.readers.archives import with_parts

Read = Callable[..., ParsedDocument]

TITLE_AND_CONTENT, TITLE_ONLY, EMPTY = 1, 5, 6
BOX = (Pt(72), Pt(36), Pt(200), Pt(50))


def saved(presentation: Any) -> bytes:
    buffer = io.BytesIO()
    presentation.save(buffer)
    return buffer.getvalue()


def add_slide(presentation: Any, layout: int = TITLE_ONLY, title: str = "") -> Any:
    slide = presentation.slides.add_slide(presentation.slide_layouts[layout])
    if title:
        slide.shapes.title.text = title
    return slide


def add_box(shapes: Any, text: str) -> None:
    shapes.add_textbox(*BOX).text_frame.text = text


def parts(blocks: tuple[Block, ...]) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks]


def test_each_slide_is_a_page_with_its_number_and_size(read: Read) -> None:
    """Behaviour 9."""
    presentation = pptx.Presentation()
    add_slide(presentation, title="One")
    add_slide(presentation, EMPTY)
    add_slide(presentation, title="Three")
    document = read(saved(presentation), "a.pptx")
    assert [(page.number, page.route, page.text) for page in document.pages] == [
        (1, "text", "One"),
        (2, "blank", ""),
        (3, "text", "Three"),
    ]
    assert {(page.width_points, page.height_points) for page in document.pages} == {(720, 540)}
    assert document.title == "One"
    assert document.mime.endswith("presentationml.presentation")


def test_title_lists_boxes_and_notes_have_their_roles(read: Read) -> None:
    presentation = pptx.Presentation()
    slide = add_slide(presentation, TITLE_AND_CONTENT, "Plan")
    frame = slide.placeholders[1].text_frame
    frame.text = "first"
    inner = frame.add_paragraph()
    inner.text, inner.level = "inner", 1
    add_box(slide.shapes, "A\vbox.")
    slide.notes_slide.notes_text_frame.text = "Say this."
    [page] = read(saved(presentation)).pages
    assert parts(page.blocks) == [
        ("heading", "Plan"),
        ("list_item", "- first"),
        ("list_item", "  - inner"),
        ("paragraph", "A box."),
        ("paragraph", "Notes: Say this."),
    ]
    assert page.blocks[3].bbox == (72, 36, 272, 86)


def test_shapes_in_groups_are_read(read: Read) -> None:
    presentation = pptx.Presentation()
    group = add_slide(presentation, EMPTY).shapes.add_group_shape()
    add_box(group.shapes, "outer")
    add_box(group.shapes.add_group_shape().shapes, "inner")
    [page] = read(saved(presentation)).pages
    assert page.text == "outer\ninner"


def test_table_gives_merged_cells_once(read: Read) -> None:
    """Behaviour 13."""
    presentation = pptx.Presentation()
    table = add_slide(presentation, EMPTY).shapes.add_table(2, 3, *BOX).table
    for column, text in enumerate(("Item", "Price", "Note")):
        table.cell(0, column).text = text
    table.cell(1, 0).text, table.cell(1, 2).text = "Lamp", "tall"
    table.cell(1, 0).merge(table.cell(1, 1))
    [page] = read(saved(presentation)).pages
    header = "| Item | Price | Note |"
    assert [(block.text, block.header) for block in page.blocks] == [
        (header, header),
        ("| Lamp |  | tall |", header),
    ]


def test_chart_is_a_small_table(read: Read) -> None:
    presentation = pptx.Presentation()
    data = CategoryChartData()
    data.categories = ["Q1", "Q2"]
    data.add_series("Ducks", (120, 130.5))
    data.add_series("Geese", (80, None))
    slide = add_slide(presentation, EMPTY)
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *BOX, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Birds seen"
    chart.category_axis.has_title = True
    chart.category_axis.axis_title.text_frame.text = "Quarter"
    [page] = read(saved(presentation)).pages
    assert [block.text for block in page.blocks] == [
        "Birds seen",
        "|  | Ducks | Geese |",
        "| Q1 | 120 | 80 |",
        "| Q2 | 130.5 |  |",
    ]


def test_chart_of_points_gives_both_values(read: Read) -> None:
    presentation = pptx.Presentation()
    data = XyChartData()
    series = data.add_series("Run")
    series.add_data_point(0.5, 10)
    add_slide(presentation, EMPTY).shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *BOX, data)
    [page] = read(saved(presentation)).pages
    assert page.blocks[-1].text == "| 0.5 | 10 |"


def test_hidden_slide_is_noted_and_not_read(read: Read) -> None:
    """Behaviour 14."""
    presentation = pptx.Presentation()
    add_slide(presentation, title="Hidden").element.set("show", "0")
    add_slide(presentation, title="Shown")
    hidden, shown = read(saved(presentation)).pages
    assert (hidden.blocks, hidden.route) == ((), "blank")
    assert [(note.kind, note.text) for note in hidden.notes] == [("hidden", "Hidden")]
    assert (shown.number, shown.text) == (2, "Shown")


def test_too_many_slides_are_refused() -> None:
    """Behaviour 10."""
    presentation = pptx.Presentation()
    for _ in range(3):
        add_slide(presentation, EMPTY)
    context = ReadContext("a.pptx", FakeOcr(), Thresholds(), limits=ReadLimits(pages=3))
    assert len(read_pptx(saved(presentation), context).pages) == 3
    with pytest.raises(StageError, match="parse: the PPTX has 3 slides"):
        read_pptx(saved(presentation), replace(context, limits=ReadLimits(pages=2)))


@pytest.mark.parametrize(
    "change",
    [
        {"ppt/presentation.xml": b"<p"},
        {"ppt/presentation.xml": b"<a/>"},
        {"ppt/slides/slide1.xml": b"<a/>"},
        {"_rels/.rels": None},
        {"[Content_Types].xml": b"<Types"},
    ],
    ids=str,
)
def test_broken_file_is_refused_by_name(change: dict[str, bytes | None], read: Read) -> None:
    """Behaviour 10."""
    presentation = pptx.Presentation()
    add_slide(presentation, title="One")
    with pytest.raises(StageError, match="parse: not a readable PPTX"):
        read(with_parts(saved(presentation), **change))
