"""The painted objects of a page through pdfium, in the order of painting."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pypdfium2.raw as pdfium_c

from ingest.pdf.base import PdfError, Shape
from ingest.pdf.geometry import Matrix, bounds, multiplied, transformed
from ragplane.core.schema import BBox

_MAX_DEPTH = 15
_FIXED_PITCH, _FORCE_BOLD = 1 << 0, 1 << 18  # font descriptor flags (ISO 32000-1, 9.8.2)
_BOLD_WEIGHT = 600
_UNPAINTED = {pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium_c.FPDF_TEXTRENDERMODE_CLIP}
_OPAQUE = 250
_UPRIGHT_POINTS = 1.0


@dataclass(frozen=True, slots=True)
class TextFacts:
    """What the characters of one text object share; `order` is its place in the painting."""

    order: int
    font: str
    size_points: float
    bold: bool
    monospaced: bool
    colour: int
    painted: bool
    direction: int


@dataclass(slots=True)
class PageObjects:
    """Shapes and images with their places in the painting, and text objects by address."""

    texts: dict[int, TextFacts] = field(default_factory=dict)
    shapes: list[Shape] = field(default_factory=list)
    shape_orders: list[int] = field(default_factory=list)
    images: list[BBox] = field(default_factory=list)
    image_orders: list[int] = field(default_factory=list)


def address(pointer: Any) -> int:
    """The address that a pdfium handle holds, 0 for none."""
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


def page_objects(page: Any, to_shown: Matrix) -> PageObjects:
    """All objects of the page, those inside form XObjects too. Raises PdfError."""
    found = PageObjects()
    for order, (pointer, matrix) in enumerate(_walk(page, None, to_shown, 0)):
        kind = pdfium_c.FPDFPageObj_GetType(pointer)
        if kind == pdfium_c.FPDF_PAGEOBJ_TEXT:
            found.texts[address(pointer)] = _text_facts(pointer, matrix, order)
        elif kind == pdfium_c.FPDF_PAGEOBJ_IMAGE:
            found.images.append(transformed((0, 0, 1, 1), multiplied(_matrix(pointer), matrix)))
            found.image_orders.append(order)
        elif kind == pdfium_c.FPDF_PAGEOBJ_PATH:
            shapes = _shapes(pointer, multiplied(_matrix(pointer), matrix))
            found.shapes.extend(shapes)
            found.shape_orders.extend([order] * len(shapes))
    return found


def _walk(page: Any, form: Any, matrix: Matrix, depth: int) -> Iterator[tuple[Any, Matrix]]:
    if form is None:
        count, get, parent = pdfium_c.FPDFPage_CountObjects, pdfium_c.FPDFPage_GetObject, page
    else:
        count, get, parent = pdfium_c.FPDFFormObj_CountObjects, pdfium_c.FPDFFormObj_GetObject, form
    for index in range(max(0, count(parent))):
        pointer = get(parent, index)
        if not pointer:
            raise PdfError("an object of the page cannot be read")
        if pdfium_c.FPDFPageObj_GetType(pointer) != pdfium_c.FPDF_PAGEOBJ_FORM:
            yield pointer, matrix
        elif depth < _MAX_DEPTH:
            inner = multiplied(_matrix(pointer), matrix)
            yield from _walk(page, pointer, inner, depth + 1)


def _matrix(pointer: Any) -> Matrix:
    raw = pdfium_c.FS_MATRIX()
    if not pdfium_c.FPDFPageObj_GetMatrix(pointer, raw):
        return (1, 0, 0, 1, 0, 0)
    return (raw.a, raw.b, raw.c, raw.d, raw.e, raw.f)


def _text_facts(pointer: Any, outer: Matrix, order: int) -> TextFacts:
    a, b, c, d, _, _ = multiplied(_matrix(pointer), outer)
    size = ctypes.c_float()
    pdfium_c.FPDFTextObj_GetFontSize(pointer, size)
    font = pdfium_c.FPDFTextObj_GetFont(pointer)
    name = _font_name(font)
    flags = pdfium_c.FPDFFont_GetFlags(font) if font else 0
    weight = pdfium_c.FPDFFont_GetWeight(font) if font else 0
    colour, alpha = _colour(pointer, pdfium_c.FPDFPageObj_GetFillColor)
    mode = pdfium_c.FPDFTextObj_GetTextRenderMode(pointer)
    return TextFacts(
        order,
        name,
        float(size.value) * (c * c + d * d) ** 0.5,
        "bold" in name.casefold() or weight >= _BOLD_WEIGHT or bool(flags & _FORCE_BOLD),
        bool(flags & _FIXED_PITCH) or "courier" in name.casefold(),
        colour,
        mode not in _UNPAINTED and alpha > 0,
        _quarter(a, b),
    )


def _font_name(font: Any) -> str:
    if not font:
        return ""
    size = pdfium_c.FPDFFont_GetBaseFontName(font, None, 0)
    buffer = ctypes.create_string_buffer(size)
    pdfium_c.FPDFFont_GetBaseFontName(font, buffer, size)
    return buffer.value.decode("utf-8", errors="replace")


def _quarter(across: float, down: float) -> int:
    """Where text runs, in clockwise degrees from right; the page as shown has y downwards."""
    if abs(across) >= abs(down):
        return 0 if across >= 0 else 180
    return 90 if down > 0 else 270


def _colour(pointer: Any, get: Any) -> tuple[int, int]:
    channels = [ctypes.c_uint() for _ in range(4)]
    if not get(pointer, *channels):
        return 0, 255
    red, green, blue, alpha = (channel.value for channel in channels)
    return red << 16 | green << 8 | blue, alpha


def _shapes(pointer: Any, matrix: Matrix) -> list[Shape]:
    """One shape for a rectangle or a curved path, one for each upright line of another path."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    if not pdfium_c.FPDFPath_GetDrawMode(pointer, fill, stroke) or not (fill.value or stroke.value):
        return []
    stroked = bool(stroke.value) and not fill.value
    get = pdfium_c.FPDFPageObj_GetStrokeColor if stroked else pdfium_c.FPDFPageObj_GetFillColor
    colour, alpha = _colour(pointer, get)
    subpaths, curved = _subpaths(pointer, matrix)
    if curved:
        box = bounds(BBox(x, y, x, y) for points in subpaths for x, y in points)
        return [Shape(box, False, stroked, colour, alpha >= _OPAQUE)]
    boxes = [box for points in subpaths for box in _straight_boxes(points, stroked)]
    return [Shape(box, straight, stroked, colour, alpha >= _OPAQUE) for box, straight in boxes]


def _subpaths(pointer: Any, matrix: Matrix) -> tuple[list[list[tuple[float, float]]], bool]:
    """The points of each subpath on the page as shown, and whether any piece is a curve."""
    subpaths: list[list[tuple[float, float]]] = []
    curved = False
    for index in range(pdfium_c.FPDFPath_CountSegments(pointer)):
        segment = pdfium_c.FPDFPath_GetPathSegment(pointer, index)
        x, y = ctypes.c_float(), ctypes.c_float()
        pdfium_c.FPDFPathSegment_GetPoint(segment, x, y)
        kind = pdfium_c.FPDFPathSegment_GetType(segment)
        curved = curved or kind == pdfium_c.FPDF_SEGMENT_BEZIERTO
        box = transformed((x.value, y.value, x.value, y.value), matrix)
        if kind == pdfium_c.FPDF_SEGMENT_MOVETO or not subpaths:
            subpaths.append([])
        subpaths[-1].append((box.x0, box.y0))
        if pdfium_c.FPDFPathSegment_GetClose(segment):
            subpaths[-1].append(subpaths[-1][0])
    return subpaths, curved


def _straight_boxes(
    points: list[tuple[float, float]], stroked: bool
) -> Iterator[tuple[BBox, bool]]:
    boxes = [
        BBox(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
        for (x0, y0), (x1, y1) in pairwise(points)
        if (x0, y0) != (x1, y1)
    ]
    if not boxes:
        return
    upright = [min(box.x1 - box.x0, box.y1 - box.y0) < _UPRIGHT_POINTS for box in boxes]
    is_rectangle = len(boxes) in (3, 4) and all(upright) and not (stroked and len(boxes) == 3)
    if is_rectangle or not stroked:
        yield bounds(boxes), is_rectangle
        return
    yield from zip(boxes, upright, strict=True)
