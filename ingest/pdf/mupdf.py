"""The seam of `ingest.pdf.base` over PyMuPDF, the default engine (AGPL or commercial)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ingest.bidi import has_rtl
from ingest.ocr import Pixels
from ingest.pdf.base import (
    Annotation,
    Attachment,
    EncryptedError,
    FormField,
    PageContent,
    PdfError,
    Shape,
    Structure,
    TextLine,
    TextSpan,
)
from ingest.pdf.geometry import Matrix, holding, transformed
from ingest.pdf.lean import pymupdf
from ingest.pdf.rtl import spans_in_reading_order
from ingest.tables import Word
from ragplane.core.schema import BBox

# One pass gives text and drawings in the order they are painted. Ligatures are resolved, text off
# the page is seen, glyphs without a character stay U+FFFD, and no image is decoded.
_FLAGS = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_COLLECT_VECTORS
_TEXT, _IMAGE, _VECTOR = 0, 1, 3
_ANYWHERE = pymupdf.INFINITE_RECT()
_BOLD, _MONOSPACED = pymupdf.TEXT_FONT_BOLD, pymupdf.TEXT_FONT_MONOSPACED
_PAINTED = 16 | 32 | 64  # filled, stroked or clipped to; none of them in text render mode 3
_NO_VALUE_FIELDS = {
    pymupdf.PDF_WIDGET_TYPE_BUTTON,
    pymupdf.PDF_WIDGET_TYPE_SIGNATURE,
    pymupdf.PDF_WIDGET_TYPE_UNKNOWN,
}
_PASSWORD = pymupdf.PDF_TX_FIELD_IS_PASSWORD
_TICKED_FIELDS = {pymupdf.PDF_WIDGET_TYPE_CHECKBOX, pymupdf.PDF_WIDGET_TYPE_RADIOBUTTON}
_NO_ANNOTATIONS = {
    pymupdf.PDF_ANNOT_LINK,
    pymupdf.PDF_ANNOT_POPUP,
    pymupdf.PDF_ANNOT_WIDGET,
}
_LEVEL = 0.7  # the cosine of a line's angle; of steeper ones the quarter turn counts
_MAX_PEN_POINTS = 6.0  # a thicker stroke is a rectangle
_ERRORS = (RuntimeError, ValueError, TypeError, IndexError)  # what the library raises, by and large


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        raise PdfError(str(error) or type(error).__name__) from error


class MupdfFile:
    """See PdfFile."""

    def __init__(self, content: bytes, passwords: Sequence[str]) -> None:
        pymupdf.TOOLS.mupdf_display_errors(False)
        pymupdf.TOOLS.mupdf_display_warnings(False)
        with _named():
            self._document: Any = pymupdf.open(stream=content, filetype="pdf")
            if self._document.needs_pass and not any(map(self._document.authenticate, passwords)):
                self._document.close()
                raise EncryptedError("the file needs a password")
            self.page_count: int = self._document.page_count
            self.title: str | None = (self._document.metadata or {}).get("title")
            self.repaired = bool(self._document.is_repaired)
            self._has_fields = bool(self._document.is_form_pdf)

    def page(self, index: int) -> MupdfPage:
        """See PdfFile."""
        with _named():
            return MupdfPage(self._document[index], self._has_fields)

    def attachments(self) -> Sequence[Attachment]:
        """See PdfFile."""
        with _named():
            infos = [self._document.embfile_info(name) for name in self._document.embfile_names()]
        return [Attachment(info["filename"] or info["name"], info["length"]) for info in infos]

    def close(self) -> None:
        """See PdfFile."""
        self._document.close()


class MupdfPage:
    """See PdfPage."""

    def __init__(self, page: Any, has_fields: bool) -> None:
        self._page = page
        self._has_fields = has_fields
        rect = page.rect
        self.width_points = float(rect.width)
        self.height_points = float(rect.height)
        self.rotation = int(page.rotation)
        self._to_shown: Matrix | None = tuple(page.rotation_matrix) if self.rotation else None

    def content(self) -> PageContent:
        """See PdfPage."""
        with _named():
            blocks, has_images = self._blocks()
            painted = self._page.get_bboxlog() if has_images else []
        lines: list[TextLine] = []
        shapes: list[Shape] = []
        line_orders: list[int] = []
        shape_orders: list[int] = []
        for order, block in enumerate(blocks):
            if block["type"] == _TEXT:
                lines.extend(map(self._line, block["lines"]))
                line_orders.extend([order] * len(block["lines"]))
            elif block["type"] == _VECTOR:
                shapes.append(self._shape(block))
                shape_orders.append(order)
        _mark_covered_by_shapes(lines, line_orders, shapes, shape_orders)
        images = self._images(painted, lines)
        return PageContent(lines, shapes, images)

    def _blocks(self) -> tuple[list[dict[str, Any]], bool]:
        """The blocks of text and drawings, and whether the page has images.

        The library copies the bytes of images that it is asked for: it is not asked where the
        page names some, and the few inline ones are cheap.
        """
        has_images = bool(self._page.get_images())
        flags = _FLAGS if has_images else _FLAGS | pymupdf.TEXT_PRESERVE_IMAGES
        blocks = self._page.get_text("dict", flags=flags, clip=_ANYWHERE)["blocks"]
        lines = (line for block in blocks if block["type"] == _TEXT for line in block["lines"])
        if any(has_rtl(span["text"]) for line in lines for span in line["spans"]):
            blocks = self._page.get_text("rawdict", flags=flags, clip=_ANYWHERE)["blocks"]
            _order_spans(blocks)
        return blocks, has_images or any(block["type"] == _IMAGE for block in blocks)

    def _box(self, box: tuple[float, float, float, float]) -> BBox:
        return BBox(*box) if self._to_shown is None else transformed(box, self._to_shown)

    def _line(self, raw: dict[str, Any]) -> TextLine:
        spans = [
            TextSpan(
                span["text"],
                self._box(span["bbox"]),
                span["font"],
                span["size"],
                bool(span["flags"] & _BOLD),
                bool(span["flags"] & _MONOSPACED),
                span["color"],
                bool(span["char_flags"] & _PAINTED) and span["alpha"] > 0,
            )
            for span in raw["spans"]
        ]
        across, down = raw["dir"]
        quarter = 0 if across > _LEVEL else 180 if across < -_LEVEL else 90 if down > 0 else 270
        return TextLine(spans, self._box(raw["bbox"]), (quarter + self.rotation) % 360)

    def _shape(self, raw: dict[str, Any]) -> Shape:
        box, stroked, straight = self._box(raw["bbox"]), raw["stroked"], raw["isrect"]
        if stroked and straight:
            box = _without_pen(box)
        return Shape(box, straight, stroked, raw["color"], raw["alpha"] >= 250)

    def _images(self, painted: list[Any], lines: list[TextLine]) -> list[BBox]:
        """The boxes of the images; marks the text that they were painted over."""
        kinds = [(kind, self._box(box[:4])) for kind, box, *_ in painted]
        images = [(order, box) for order, (kind, box) in enumerate(kinds) if kind == "fill-image"]
        spans = [span for line in lines for span in line.spans]
        if images and spans:
            texts = [(order, box) for order, (kind, box) in enumerate(kinds) if "text" in kind]
            boxes = [span.bbox for span in spans]
            last_text = _last_order(texts, boxes)
            for span, text, image in zip(spans, last_text, _last_order(images, boxes), strict=True):
                if image > text:
                    span.covered = "image"
        return [box for _, box in images]

    def words(self) -> Sequence[Word]:
        """See PdfPage."""
        with _named():
            return [Word(word[4], self._box(word[:4])) for word in self._page.get_text("words")]

    def fields(self) -> Sequence[FormField]:
        """See PdfPage."""
        if not self._has_fields:
            return []
        with _named():
            return [
                self._field(widget)
                for widget in _chain(self._page.first_widget)
                if widget.field_type not in _NO_VALUE_FIELDS
            ]

    def _field(self, widget: Any) -> FormField:
        box = self._box(tuple(widget.rect))
        if widget.field_type in _TICKED_FIELDS:
            return FormField("[x]" if _is_ticked(widget) else "[ ]", box)
        if widget.field_flags & _PASSWORD and widget.field_type == pymupdf.PDF_WIDGET_TYPE_TEXT:
            return FormField("", box)
        value = widget.field_value
        return FormField(", ".join(value) if isinstance(value, list) else str(value or ""), box)

    def annotations(self) -> Sequence[Annotation]:
        """See PdfPage."""
        with _named():
            return [
                Annotation(annot.type[1], annot.info["content"], self._box(tuple(annot.rect)))
                for annot in _chain(self._page.first_annot)
                if annot.type[0] not in _NO_ANNOTATIONS and annot.info["content"].strip()
            ]

    def structure(self) -> Structure | None:
        """See PdfPage."""
        if self.rotation:
            return None  # the model looks at pages as they lie in the file
        from ingest.pdf.mupdf_layout import page_structure

        with _named():
            return page_structure(self._page)

    def render(self, dpi: float, clip: BBox | None = None) -> Pixels:
        """See PdfPage."""
        with _named():
            pixmap = self._page.get_pixmap(
                matrix=pymupdf.Matrix(dpi / 72, dpi / 72),
                colorspace=pymupdf.csRGB,
                alpha=False,
                clip=clip,
            )
        flat = np.frombuffer(pixmap.samples, dtype=np.uint8)
        rows = flat.reshape(pixmap.height, pixmap.stride)[:, : pixmap.width * 3]
        return rows.reshape(pixmap.height, pixmap.width, 3)


def _chain(first: Any) -> Iterator[Any]:
    """Annotations or fields one by one; the library's own loop skips those without a number."""
    while first is not None:
        yield first
        first = first.next


def _is_ticked(widget: Any) -> bool:
    return widget.field_value not in (None, "", "Off", False)


def _order_spans(blocks: Sequence[dict[str, Any]]) -> None:
    """Give the spans of `rawdict` their text, as it is read."""
    for block in blocks:
        for line in block.get("lines", ()):
            is_level = line["dir"][0] > _LEVEL
            line["spans"] = spans_in_reading_order(line["spans"], is_level=is_level)


def _without_pen(box: BBox) -> BBox:
    """A stroke's own line: the library's box has the width of the pen on every side."""
    width, height = box.x1 - box.x0, box.y1 - box.y0
    pen = min(width, height) / 2 if min(width, height) <= _MAX_PEN_POINTS else 0.0
    return BBox(box.x0 + pen, box.y0 + pen, box.x1 - pen, box.y1 - pen)


def _mark_covered_by_shapes(
    lines: Sequence[TextLine],
    line_orders: Sequence[int],
    shapes: Sequence[Shape],
    shape_orders: Sequence[int],
) -> None:
    """Mark the spans under a filled rectangle that was painted after them."""
    covers = [
        (order, shape.bbox)
        for order, shape in zip(shape_orders, shapes, strict=True)
        if shape.straight and shape.opaque and not shape.stroked
    ]
    if not covers or not lines or covers[-1][0] < line_orders[0]:
        return
    placed = [
        (order, span) for order, line in zip(line_orders, lines, strict=True) for span in line.spans
    ]
    last_cover = _last_order(covers, [span.bbox for _, span in placed])
    for (order, span), cover in zip(placed, last_cover, strict=True):
        if cover > order:
            span.covered = "shape"


def _last_order(outers: Sequence[tuple[int, BBox]], boxes: Sequence[BBox]) -> list[int]:
    """For each box the order of the last of `outers` that holds its centre, -1 without one."""
    if not outers:
        return [-1] * len(boxes)
    orders = np.array([order for order, _ in outers])
    found = np.where(holding([box for _, box in outers], boxes), orders, -1).max(axis=1)
    return [int(order) for order in found]
