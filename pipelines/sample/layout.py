"""Set blocks as PDF pages with the fonts every PDF reader has, so that the result is repeatable."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import pymupdf

from pipelines.sample.markup import Block

Pdf: TypeAlias = Any
"""A PyMuPDF document; the library leaves most of its methods without types."""

_GAP = 4.0
_CELL_PAD = 4.0


@dataclass(frozen=True)
class Style:
    """Page size, type and running lines; `{page}` in a running line becomes the page number."""

    width: float = 595.0
    height: float = 842.0
    margin: float = 72.0
    columns: int = 1
    gutter: float = 20.0
    size: float = 11.0
    leading: float = 1.42
    font: str = "helv"
    bold: str = "hebo"
    title_size: float = 20.0
    header: str = ""
    footer: str = ""

    @property
    def column_width(self) -> float:
        """The width of one text column."""
        room = self.width - 2 * self.margin - self.gutter * (self.columns - 1)
        return room / self.columns

    def heading_size(self, level: int) -> float:
        """The type size of a heading of the given depth; depth 1 is the title."""
        return (self.title_size, self.size * 1.5, self.size * 1.22, self.size * 1.05)[level - 1]


def wrap(text: str, font: str, size: float, width: float) -> list[str]:
    """Break `text` at spaces into lines no wider than `width`."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and _length(longer, font, size) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line]


def _length(text: str, font: str, size: float) -> float:
    return float(pymupdf.get_text_length(text, fontname=font, fontsize=size))


class Typesetter:
    """Flows blocks down columns and over pages."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.document = new_pdf()
        self._bottom = style.height - style.margin
        self._open_page()

    def add(self, blocks: list[Block]) -> None:
        """Set the blocks and finish the last page."""
        for block in blocks:
            self._add(block)
        self._close_page()

    def _add(self, block: Block) -> None:
        match block.kind:
            case "heading":
                self._heading(block)
            case "paragraph":
                self._text(block.text)
            case "item":
                self._text(block.text, label=block.label)
            case "table":
                self._table(block.rows)
            case "column":
                self._next_column()
            case "page":
                self._next_page()
            case "blank":
                self._next_page(bare=True)
                self._next_page()

    def _open_page(self, bare: bool = False) -> None:
        style = self.style
        page = self.document.new_page(width=style.width, height=style.height)
        self._shape = page.new_shape()
        self._column = 0
        self._top = self._y = style.margin
        self._footer = "" if bare else style.footer
        if not bare:
            self._running(style.header, style.margin - 26)

    def _close_page(self) -> None:
        self._running(self._footer, self.style.height - 34)
        self._shape.commit()

    def _running(self, line: str, y: float) -> None:
        if line:
            text = line.replace("{page}", str(len(self.document)))
            self._put(text, self.style.margin, y, self.style.font, 8.5)

    def _next_page(self, bare: bool = False) -> None:
        self._close_page()
        self._open_page(bare)

    def _next_column(self) -> None:
        if self._column + 1 < self.style.columns:
            self._column += 1
            self._y = self._top
        else:
            self._next_page()

    def _need(self, height: float) -> None:
        if self._y + height > self._bottom:
            self._next_column()

    @property
    def _left(self) -> float:
        return self.style.margin + self._column * (self.style.column_width + self.style.gutter)

    def _put(self, text: str, x: float, y: float, font: str, size: float) -> None:
        self._shape.insert_text((x, y), text, fontname=font, fontsize=size)

    def _lines(self, lines: list[str], font: str, size: float, indent: float = 0) -> None:
        step = size * self.style.leading
        for line in lines:
            self._need(step)
            self._put(line, self._left + indent, self._y + size, font, size)
            self._y += step

    def _heading(self, block: Block) -> None:
        style = self.style
        size = style.heading_size(block.level)
        spanning = block.level == 1
        width = style.width - 2 * style.margin if spanning else style.column_width
        lines = wrap(block.text, style.bold, size, width)
        if self._y > self._top:
            self._y += size * 0.7
        self._need((len(lines) * size + 3 * style.size) * style.leading)
        self._lines(lines, style.bold, size)
        self._y += _GAP
        if spanning:
            self._top = self._y

    def _text(self, text: str, label: str = "") -> None:
        style = self.style
        indent = 18.0 if label else 0.0
        lines = wrap(text, style.font, style.size, style.column_width - indent)
        self._need(min(len(lines), 2) * style.size * style.leading)
        if label:
            mark = "\u00b7" if label == "-" else label
            self._put(mark, self._left + 3, self._y + style.size, style.font, style.size)
        self._lines(lines, style.font, style.size, indent)
        self._y += _GAP if label else style.size * 0.6

    def _table(self, rows: tuple[tuple[str, ...], ...]) -> None:
        widths = self._widths(rows)
        for number, row in enumerate(rows):
            self._row(row, widths, self.style.bold if number == 0 else self.style.font)
        self._y += self.style.size

    def _widths(self, rows: tuple[tuple[str, ...], ...]) -> list[float]:
        style = self.style
        widths = [
            max(_length(cell, style.bold, style.size - 1) for cell in column) + 2 * _CELL_PAD
            for column in zip(*rows, strict=True)
        ]
        widths[widths.index(max(widths))] += style.column_width - sum(widths)
        return widths

    def _row(self, row: tuple[str, ...], widths: list[float], font: str) -> None:
        size = self.style.size - 1
        step = size * 1.3
        cells = [
            wrap(cell, font, size, width - 2 * _CELL_PAD)
            for cell, width in zip(row, widths, strict=True)
        ]
        height = max(len(cell) for cell in cells) * step + 2 * _CELL_PAD
        self._need(height)
        x = self._left
        for cell, width in zip(cells, widths, strict=True):
            self._shape.draw_rect((x, self._y, x + width, self._y + height))
            for number, line in enumerate(cell):
                baseline = self._y + _CELL_PAD + size + number * step
                self._put(line, x + _CELL_PAD, baseline, font, size)
            x += width
        self._shape.finish(width=0.6)
        self._y += height


def new_pdf() -> Pdf:
    """An empty document."""
    opener: Any = pymupdf.open
    return opener()


def typeset(blocks: list[Block], style: Style) -> Pdf:
    """Lay the blocks out and return the open document."""
    setter = Typesetter(style)
    setter.add(blocks)
    return setter.document


def pdf_bytes(document: Pdf, title: str) -> bytes:
    """Serialise with fixed dates and no random identifier."""
    stamp = "D:20310601090000Z"
    document.set_metadata({"title": title, "creationDate": stamp, "modDate": stamp})
    data: bytes = document.tobytes(garbage=3, deflate=True, no_new_id=True)
    return data
