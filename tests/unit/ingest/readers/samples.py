"""A small file of each format, with most of what it can hold."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import docx
import pptx
from openpyxl import Workbook
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Pt

from tests.unit.ingest.readers.archives import packed
from tests.unit.ingest.readers.test_epub import PARTS
from tests.unit.ingest.readers.test_odt import odt

ODT_BODY = (
    '<text:h text:outline-level="2">Set up</text:h><text:list><text:list-item><text:p>a</text:p>'
    "</text:list-item></text:list><table:table><table:table-row>"
    '<table:table-cell table:number-columns-spanned="2"><text:p>Item</text:p></table:table-cell>'
    '<table:table-cell table:number-columns-repeated="3"/></table:table-row></table:table>'
)


def saved(document: Any) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def letter() -> bytes:
    document = docx.Document()
    document.add_heading("Offer")
    document.add_paragraph("Ten lamps.", style="List Number")
    table = document.add_table(2, 2)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "Item"
    return saved(document)


def slides() -> bytes:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Plan"
    slide.placeholders[1].text_frame.text = "first"
    slide.shapes.add_table(2, 2, *map(Pt, (0, 0, 90, 90))).table.cell(0, 0).text = "Item"
    data = CategoryChartData()
    data.categories = ["Q1"]
    data.add_series("Ducks", (120,))
    place = map(Pt, (0, 0, 90, 90))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data)
    slide.notes_slide.notes_text_frame.text = "Say this."
    return saved(presentation)


def workbook() -> bytes:
    book = Workbook()
    sheet = book.create_sheet("Prices")
    sheet.append(["Item", "Price"])
    sheet.append(["Lamp", 12.5])
    sheet["B2"].number_format = "#,##0.00"
    return saved(book)


def mail() -> bytes:
    message = EmailMessage()
    message["From"], message["Subject"], message["Message-ID"] = "a@b", "Grüße", "<1@b>"
    message.set_content("plain")
    message.add_alternative("<p>rich", subtype="html")
    message.add_attachment(letter(), maintype="a", subtype="b", filename="offer.docx")
    return message.as_bytes()


SAMPLES: dict[str, Callable[[], bytes]] = {
    "a.docx": letter,
    "a.pptx": slides,
    "a.xlsx": workbook,
    "a.odt": lambda: odt(ODT_BODY),
    "a.epub": lambda: packed(PARTS),
    "a.eml": mail,
    "a.json": lambda: json.dumps([{"a": 1, "b": {"c": [1, 2]}}] * 5).encode(),
}
