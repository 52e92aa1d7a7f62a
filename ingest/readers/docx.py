"""DOCX: python-docx opens the package; headings, paragraphs, lists and tables in body order.

Page headers and footers, comments and tracked deletions are left out. Text boxes stand after the
paragraph that they are anchored to, footnotes after the paragraph that refers to them.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from docx.exceptions import PythonDocxError
from docx.opc.exceptions import OpcError
from docx.opc.part import XmlPart
from docx.package import Package

from ingest.parsed import ParsedDocument
from ingest.readers.base import ReadContext
from ingest.readers.docx_styles import ParagraphFormat, Styles, child, child_value
from ingest.readers.flowing import flowing_document, list_item
from ingest.readers.numbering import Numbering
from ingest.readers.rows import Cell, spread, table_blocks
from ingest.readers.zipped import attribute, local_name, malformed_as, open_zip, xml_root
from ragplane.core.schema import Block, Note

_MIME = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_LEFT_OUT = frozenset(
    "sectPr del moveFrom delText instrText delInstrText pPr rPr tblPr tblGrid trPr tcPr rt sdtPr "
    "sdtEndPr".split()
)
_SPACES = frozenset("tab ptab br cr".split())
_NOTES = {"footnoteReference": "footnote", "endnoteReference": "endnote"}
_MAX_HIDDEN_CHARACTERS = 2000


def read_docx(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read a DOCX as one page. Raises StageError `parse` for a broken or inflated file."""
    started = time.perf_counter()
    with malformed_as("DOCX", PythonDocxError, OpcError):
        open_zip(content, "DOCX", context.limits).close()
        package = Package.open(io.BytesIO(content))
        body = _Body(package.main_document_part)
        blocks = list(body.blocks())
        title = package.core_properties.title
    hidden = " ".join("".join(body.hidden).split())[:_MAX_HIDDEN_CHARACTERS]
    notes = [Note("hidden", hidden)] if hidden else []
    return flowing_document(_MIME, blocks, context, started, title, notes)


@dataclass(slots=True)
class _Inline:
    """What a paragraph holds: its text, its text boxes, the notes that it refers to."""

    pieces: list[str] = field(default_factory=list)
    boxes: list[Any] = field(default_factory=list)
    notes: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())


class _Body:
    """Reads the main part with its styles, numbering and notes."""

    def __init__(self, part: Any) -> None:
        self._root = _root(part)
        self._styles = Styles(_related(part, "styles"))
        self._numbering = Numbering(_related(part, "numbering"))
        self._notes = {
            (kind, attribute(note, "id")): note
            for kind in _NOTES.values()
            for note in _children(_related(part, f"{kind}s"))
        }
        self._noted = 0
        self.hidden: list[str] = []

    def blocks(self) -> Iterator[Block]:
        body = child(self._root, "body")
        if body is None:
            raise ValueError("the main part has no body")
        return self._walk(body)

    def _walk(self, container: Iterable[Any]) -> Iterator[Block]:
        for part in container:
            name = local_name(part)
            if name == "p":
                yield from self._paragraph(part)
            elif name == "tbl":
                yield from self._table(part)
            elif name == "AlternateContent":
                yield from self._walk(_shown_alternative(part))
            elif name not in _LEFT_OUT:
                yield from self._walk(part)

    def _paragraph(self, paragraph: Any) -> Iterator[Block]:
        inline = _Inline()
        self._gather(paragraph, inline)
        layout = self._styles.format_of(child(paragraph, "pPr"))
        label, level = self._label(layout)
        if inline.text:
            yield _text_block(inline.text, layout, label, level)
        for box in inline.boxes:
            yield from self._walk(box)
        for mark, note in inline.notes:
            text = " ".join(block.text for block in self._walk(note))
            yield Block("paragraph", f"{mark} {text}")

    def _label(self, layout: ParagraphFormat) -> tuple[str, int]:
        if layout.number is None:
            return "", 0
        level = layout.list_level
        if level is None:
            level = self._numbering.level_of_style(layout.number, layout.style)
        return self._numbering.label(layout.number, level), level

    def _gather(self, element: Any, inline: _Inline) -> None:
        for part in element:
            name = local_name(part)
            if name == "t":
                inline.pieces.append(part.text or "")
            elif name in _SPACES:
                inline.pieces.append(" ")
            elif name == "noBreakHyphen":
                inline.pieces.append("-")
            elif name == "txbxContent":
                inline.boxes.append(part)
            elif name in _NOTES:
                self._refer(part, name, inline)
            elif name == "AlternateContent":
                self._gather(_shown_alternative(part), inline)
            elif name == "r" and _is_hidden(part):
                self.hidden.extend(text.text or "" for text in part if local_name(text) == "t")
            elif name not in _LEFT_OUT:
                self._gather(part, inline)

    def _refer(self, reference: Any, name: str, inline: _Inline) -> None:
        note = self._notes.pop((_NOTES[name], attribute(reference, "id")), None)
        if note is not None:
            self._noted += 1
            mark = f"[{self._noted}]"
            inline.pieces.append(mark)
            inline.notes.append((mark, note))

    def _table(self, table: Any) -> Iterator[Block]:
        rows = [list(_cells(row)) for row in _rows(table)]
        if [len(row) for row in rows] == [1]:  # a frame around text
            yield from self._walk(rows[0][0])
            return
        inner: list[Any] = []
        yield from table_blocks(spread([self._texts(row, inner) for row in rows]))
        for nested in inner:
            yield from self._table(nested)

    def _texts(self, row: list[Any], inner: list[Any]) -> Iterator[Cell]:
        """The cells of a row; tables in them are put into `inner`."""
        for cell in row:
            if local_name(cell) == "gridBefore":
                yield Cell("", int(attribute(cell, "val") or 0))
                continue
            properties = child(cell, "tcPr")
            tables = [part for part in cell if local_name(part) == "tbl"]
            inner.extend(tables)
            content = (part for part in cell if local_name(part) != "tbl")
            text = " ".join(block.text.strip() for block in self._walk(content))
            yield Cell(text, int(child_value(properties, "gridSpan") or 1))


def _text_block(text: str, layout: ParagraphFormat, label: str, level: int) -> Block:
    if layout.heading_level:
        return Block("heading", f"{label} {text}".strip(), level=layout.heading_level)
    if layout.is_list and layout.number != "0":
        return list_item(text, label or "-", level)
    return Block("paragraph", text)


def _rows(table: Any) -> Iterator[Any]:
    for part in table:
        name = local_name(part)
        if name == "tr":
            if child(child(part, "trPr"), "del") is None:
                yield part
        elif name not in _LEFT_OUT:
            yield from _rows(part)


def _cells(row: Any) -> Iterator[Any]:
    """The cells of a row, and what says that it starts late (`gridBefore`)."""
    for part in row:
        name = local_name(part)
        if name == "tc":
            yield part
        elif name == "trPr":
            before = child(part, "gridBefore")
            if before is not None:
                yield before
        elif name not in _LEFT_OUT:
            yield from _cells(part)


def _shown_alternative(element: Any) -> Any:
    """The new form of content that is there in a new and an old form."""
    return next((part for part in element if local_name(part) == "Choice"), element)


def _is_hidden(run: Any) -> bool:
    vanish = child(child(run, "rPr"), "vanish")
    return vanish is not None and attribute(vanish, "val") not in ("0", "false", "off")


def _related(part: Any, kind: str) -> Any | None:
    for relation in part.rels.values():
        if not relation.is_external and relation.reltype.endswith(f"/{kind}"):
            return _root(relation.target_part)
    return None


def _root(part: Any) -> Any:
    return part.element if isinstance(part, XmlPart) else xml_root(part.blob)


def _children(root: Any | None) -> Iterable[Any]:
    return root if root is not None else ()
