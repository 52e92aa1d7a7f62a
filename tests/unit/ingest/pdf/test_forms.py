"""Form fields, annotations and attachments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymupdf

from ingest.parsed import ParsedDocument

MakePdf = Callable[..., bytes]
Read = Callable[..., ParsedDocument]


def add_field(page: Any, kind: int, name: str, box: tuple[float, ...], **values: Any) -> None:
    widget = pymupdf.Widget()
    widget.field_type, widget.field_name, widget.rect = kind, name, pymupdf.Rect(box)
    for key, value in values.items():
        setattr(widget, key, value)
    page.add_widget(widget)


def form(page: Any) -> None:
    page.insert_text((72, 100), "Name:")
    add_field(page, pymupdf.PDF_WIDGET_TYPE_TEXT, "name", (110, 86, 300, 106), field_value="Ada")
    page.insert_text((92, 140), "I agree")
    add_field(page, pymupdf.PDF_WIDGET_TYPE_CHECKBOX, "yes", (72, 128, 86, 142), field_value=True)
    page.insert_text((92, 180), "Send me letters")
    add_field(page, pymupdf.PDF_WIDGET_TYPE_CHECKBOX, "no", (72, 168, 86, 182), field_value=False)
    page.insert_text((72, 220), "Town:")
    add_field(
        page,
        pymupdf.PDF_WIDGET_TYPE_COMBOBOX,
        "town",
        (110, 206, 300, 226),
        choice_values=["Oslo", "Bergen"],
        field_value="Bergen",
    )
    page.insert_text((72, 260), "Password:")
    add_field(
        page,
        pymupdf.PDF_WIDGET_TYPE_TEXT,
        "secret",
        (140, 246, 300, 266),
        field_value="hunter2",
        field_flags=pymupdf.PDF_TX_FIELD_IS_PASSWORD,
    )


def test_values_and_ticks_are_text_beside_their_labels(make_pdf: MakePdf, read: Read) -> None:
    """Behaviour 14."""
    [page] = read(make_pdf(form)).pages
    text = " ".join(page.text.split())
    assert text == "Name: Ada [x] I agree [ ] Send me letters Town: Bergen Password:"
    assert page.notes == ()


def test_annotations_are_listed_and_not_text(make_pdf: MakePdf, read: Read) -> None:
    """Behaviour 14."""

    def annotated(page: Any) -> None:
        page.insert_text((72, 100), "The contract ends in May.")
        page.add_text_annot((300, 90), "Check this date")
        page.add_highlight_annot((72, 88, 150, 104)).set_info(content="Which one?")
        page.add_freetext_annot((72, 200, 300, 240), "Not signed yet")
        page.insert_link({"kind": 2, "from": pymupdf.Rect(72, 88, 150, 104), "uri": "a:b"})

    [page] = read(make_pdf(annotated)).pages
    assert page.text == "The contract ends in May."
    assert [(note.kind, note.text) for note in page.notes] == [
        ("annotation", "Text: Check this date"),
        ("annotation", "Highlight: Which one?"),
        ("annotation", "FreeText: Not signed yet"),
    ]
    assert all(note.bbox is not None for note in page.notes)


def test_attachments_are_listed(make_pdf: MakePdf, read: Read) -> None:
    """Behaviour 14."""

    def attach(page: Any) -> None:
        page.insert_text((72, 100), "See the sheet.")
        page.parent.embfile_add("sheet", b"a,b\n1,2\n", filename="sheet.csv")

    [note] = read(make_pdf(attach)).notes
    assert note.kind == "attachment"
    assert note.text.startswith("sheet")
    assert note.text.endswith("(8 bytes)")
