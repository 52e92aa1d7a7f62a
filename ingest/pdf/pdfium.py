"""The seam of `ingest.pdf.base` over pypdfium2 (BSD or Apache), for those who cannot take AGPL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium_c

from ingest.ocr import Pixels
from ingest.pdf.base import (
    Annotation,
    Attachment,
    EncryptedError,
    FormField,
    PageContent,
    PdfError,
    Structure,
)
from ingest.pdf.geometry import Matrix, area, intersection, multiplied
from ingest.pdf.pdfium_annotations import page_annotations, page_fields, utf16
from ingest.pdf.pdfium_objects import page_objects
from ingest.pdf.pdfium_text import page_characters, text_lines, words_of
from ingest.tables import Word
from ragplane.core.schema import BBox

_CROSS_REFERENCES = re.compile(rb"\s*(?:xref|\d+\s+\d+\s+obj)")


class PdfiumFile:
    """See PdfFile."""

    def __init__(self, content: bytes, passwords: Sequence[str]) -> None:
        self._document: Any = _open(content, passwords)
        self._document.init_forms()
        self.page_count: int = len(self._document)
        self.title: str | None = utf16(
            lambda buffer, size: pdfium_c.FPDF_GetMetaText(self._document, b"Title", buffer, size)
        )
        self.repaired = not _has_cross_references(content)

    def page(self, index: int) -> PdfiumPage:
        """See PdfFile."""
        try:
            return PdfiumPage(self._document, self._document[index])
        except pypdfium2.PdfiumError as error:
            raise PdfError(str(error)) from error

    def attachments(self) -> Sequence[Attachment]:
        """See PdfFile."""
        found = map(self._document.get_attachment, range(self._document.count_attachments()))
        try:
            return [Attachment(_attachment_name(one), len(one.get_data())) for one in found]
        except pypdfium2.PdfiumError as error:
            raise PdfError(str(error)) from error

    def close(self) -> None:
        """See PdfFile."""
        self._document.close()


def _attachment_name(attachment: Any) -> str:
    return utf16(lambda buffer, size: pdfium_c.FPDFAttachment_GetName(attachment, buffer, size))


def _open(content: bytes, passwords: Sequence[str]) -> Any:
    for password in (None, *passwords):
        try:
            return pypdfium2.PdfDocument(content, password=password)
        except pypdfium2.PdfiumError as error:
            if getattr(error, "err_code", None) != pdfium_c.FPDF_ERR_PASSWORD:
                raise PdfError(str(error)) from error
    raise EncryptedError("the file needs a password")


def _has_cross_references(content: bytes) -> bool:
    """Whether the file's last `startxref` points to a cross-reference table or stream."""
    start = max(content.find(b"%PDF-"), 0)
    found = re.findall(rb"startxref\s+(\d+)", content[-2048:])
    if not found:
        return False
    places = (int(found[-1]), int(found[-1]) + start)
    return any(_CROSS_REFERENCES.match(content[place : place + 40]) for place in places)


class PdfiumPage:
    """See PdfPage."""

    def __init__(self, document: Any, page: Any) -> None:
        self._document = document
        self._page = page
        self.width_points, self.height_points = map(float, page.get_size())
        self.rotation = int(page.get_rotation())
        self._to_shown = _to_shown(page, self.rotation)

    def content(self) -> PageContent:
        """See PdfPage."""
        objects = page_objects(self._page, self._to_shown)
        characters = page_characters(self._page, self._to_shown, objects)
        return PageContent(text_lines(characters), objects.shapes, objects.images)

    def words(self) -> Sequence[Word]:
        """See PdfPage."""
        objects = page_objects(self._page, self._to_shown)
        return words_of(page_characters(self._page, self._to_shown, objects))

    def fields(self) -> Sequence[FormField]:
        """See PdfPage."""
        return page_fields(self._document, self._page, self._to_shown)

    def annotations(self) -> Sequence[Annotation]:
        """See PdfPage."""
        return page_annotations(self._page, self._to_shown)

    def structure(self) -> Structure | None:
        """See PdfPage; pdfium has no layout model."""
        return None

    def render(self, dpi: float, clip: BBox | None = None) -> Pixels:
        """See PdfPage."""
        whole = BBox(0, 0, self.width_points, self.height_points)
        part = whole if clip is None else intersection(clip, whole)
        if area(part) <= 0:
            raise PdfError("there is nothing to render")
        crop = (part.x0, whole.y1 - part.y1, whole.x1 - part.x1, part.y0)
        bitmap = self._page.render(scale=dpi / 72, crop=crop, rev_byteorder=True)
        pixels: Pixels = np.array(bitmap.to_numpy()[:, :, :3])
        bitmap.close()
        return pixels


def _to_shown(page: Any, rotation: int) -> Matrix:
    """From the file's coordinates (origin bottom left, before /Rotate) to the page as shown."""
    left, bottom, right, top = page.get_bbox()
    width, height = right - left, top - bottom
    upright: Matrix = (1, 0, 0, -1, -left, top)
    turn: dict[int, Matrix] = {
        0: (1, 0, 0, 1, 0, 0),
        90: (0, 1, -1, 0, height, 0),
        180: (-1, 0, 0, -1, width, height),
        270: (0, -1, 1, 0, 0, width),
    }
    return multiplied(upright, turn[rotation])
