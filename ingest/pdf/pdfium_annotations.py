"""Form fields and annotations of a page through pdfium."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pypdfium2.raw as pdfium_c

from ingest.pdf.base import Annotation, FormField
from ingest.pdf.geometry import Matrix, transformed
from ragplane.core.schema import BBox

_PASSWORD = 1 << 13  # flag of a text field (ISO 32000-1, 12.7.4.3)
_TICKED = {pdfium_c.FPDF_FORMFIELD_CHECKBOX, pdfium_c.FPDF_FORMFIELD_RADIOBUTTON}
_WITH_VALUE = {
    pdfium_c.FPDF_FORMFIELD_TEXTFIELD,
    pdfium_c.FPDF_FORMFIELD_COMBOBOX,
    pdfium_c.FPDF_FORMFIELD_LISTBOX,
}
_KINDS = {
    pdfium_c.FPDF_ANNOT_TEXT: "Text",
    pdfium_c.FPDF_ANNOT_FREETEXT: "FreeText",
    pdfium_c.FPDF_ANNOT_LINE: "Line",
    pdfium_c.FPDF_ANNOT_SQUARE: "Square",
    pdfium_c.FPDF_ANNOT_CIRCLE: "Circle",
    pdfium_c.FPDF_ANNOT_POLYGON: "Polygon",
    pdfium_c.FPDF_ANNOT_POLYLINE: "PolyLine",
    pdfium_c.FPDF_ANNOT_HIGHLIGHT: "Highlight",
    pdfium_c.FPDF_ANNOT_UNDERLINE: "Underline",
    pdfium_c.FPDF_ANNOT_SQUIGGLY: "Squiggly",
    pdfium_c.FPDF_ANNOT_STRIKEOUT: "StrikeOut",
    pdfium_c.FPDF_ANNOT_STAMP: "Stamp",
    pdfium_c.FPDF_ANNOT_CARET: "Caret",
    pdfium_c.FPDF_ANNOT_INK: "Ink",
    pdfium_c.FPDF_ANNOT_FILEATTACHMENT: "FileAttachment",
    pdfium_c.FPDF_ANNOT_REDACT: "Redact",
}


def page_fields(document: Any, page: Any, to_shown: Matrix) -> list[FormField]:
    """See PdfPage.fields."""
    if document.formenv is None:
        return []
    fields = []
    for annotation in _annotations(page):
        kind = pdfium_c.FPDFAnnot_GetFormFieldType(document.formenv, annotation)
        if kind in _TICKED:
            ticked = pdfium_c.FPDFAnnot_IsChecked(document.formenv, annotation)
            fields.append(FormField("[x]" if ticked else "[ ]", _box(annotation, to_shown)))
        elif kind in _WITH_VALUE:
            flags = pdfium_c.FPDFAnnot_GetFormFieldFlags(document.formenv, annotation)
            text = "" if flags & _PASSWORD else _field_value(document.formenv, annotation)
            fields.append(FormField(text, _box(annotation, to_shown)))
    return fields


def page_annotations(page: Any, to_shown: Matrix) -> list[Annotation]:
    """See PdfPage.annotations."""
    found = []
    for annotation in _annotations(page):
        kind = _KINDS.get(pdfium_c.FPDFAnnot_GetSubtype(annotation))
        text = _contents(annotation) if kind else ""
        if kind and text.strip():
            found.append(Annotation(kind, text, _box(annotation, to_shown)))
    return found


def _annotations(page: Any) -> Iterator[Any]:
    for index in range(max(0, pdfium_c.FPDFPage_GetAnnotCount(page))):
        with _annotation(page, index) as annotation:
            if annotation:
                yield annotation


@contextmanager
def _annotation(page: Any, index: int) -> Iterator[Any]:
    annotation = pdfium_c.FPDFPage_GetAnnot(page, index)
    try:
        yield annotation
    finally:
        if annotation:
            pdfium_c.FPDFPage_CloseAnnot(annotation)


def _box(annotation: Any, to_shown: Matrix) -> BBox:
    rect = pdfium_c.FS_RECTF()
    pdfium_c.FPDFAnnot_GetRect(annotation, rect)
    return transformed((rect.left, rect.bottom, rect.right, rect.top), to_shown)


def _contents(annotation: Any) -> str:
    return utf16(
        lambda buffer, size: pdfium_c.FPDFAnnot_GetStringValue(
            annotation, b"Contents", buffer, size
        )
    )


def _field_value(form: Any, annotation: Any) -> str:
    return utf16(
        lambda buffer, size: pdfium_c.FPDFAnnot_GetFormFieldValue(form, annotation, buffer, size)
    )


def utf16(read: Callable[[Any, int], int]) -> str:
    """What pdfium writes into a buffer once its size in bytes is known; broken parts replaced."""
    size = read(None, 0)
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[: max(0, size - 2)].decode("utf-16-le", errors="replace")
