"""From raw lines to blocks: furniture, headings, lists, joined lines, tables over page breaks.

Works on whole documents, because what is body text, furniture or an attested word shows only there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ingest.parsed import Line, RawPage, Table
from ragplane.core.schema import BBox, Block, Page

_HEADING_SCALE = 1.12
_OCR_HEADING_SCALE = 1.4  # the height of a recognised line is a rough measure of its font size
_HEADING_CHARACTERS = 120
_MARGIN_SHARE = 0.12
_FURNITURE_PAGES = 3
_FURNITURE_SHARE = 0.4
_LIST_ITEM = re.compile(r"^(?:[•◦▪‣·–*-]|\(?(?:\d{1,2}|[a-z])[.)])\s+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def blocks_of_pages(raw_pages: Sequence[RawPage]) -> list[Page]:
    """Pages with their blocks in reading order, furniture left out."""
    furniture = _furniture(raw_pages)
    body_size = _body_size(raw_pages)
    heading_sizes = _heading_sizes(raw_pages, body_size)
    words = _words(raw_pages)
    pages: list[Page] = []
    last_table: tuple[Table, str] | None = None
    for raw in raw_pages:
        blocks: list[Block] = []
        for paragraph in raw.paragraphs:
            lines = [line for line in paragraph if not _is_furniture(line, raw, furniture)]
            if lines:
                blocks.append(_block(lines, raw, body_size, heading_sizes, words))
        for table in sorted(raw.tables, key=lambda table: table.bbox.y0):
            header = _continued_header(table, last_table if _is_on_top(table, blocks) else None)
            rows, header = _table_blocks(table, header)
            blocks = _insert(blocks, rows, table.bbox)
            last_table = (table, header)
        if not blocks or blocks[-1].kind != "table_row":
            last_table = None  # a table that ended on its page
        pages.append(_page(raw, blocks))
    return pages


def _page(raw: RawPage, blocks: Sequence[Block]) -> Page:
    return Page(
        number=raw.number,
        width_points=raw.width_points,
        height_points=raw.height_points,
        rotation=raw.rotation,
        route=raw.route,
        reason=raw.reason,
        signals=raw.signals,
        blocks=tuple(block for block in blocks if block.text),
        seconds=raw.seconds,
    )


def _block(
    lines: Sequence[Line],
    raw: RawPage,
    body_size: float,
    heading_sizes: Sequence[float],
    words: frozenset[str],
) -> Block:
    size = max(line.font_size_points for line in lines)
    bold = all(line.bold for line in lines)
    code = all(line.monospaced for line in lines)
    text = "\n".join(line.text for line in lines) if code else join_lines(lines, words)
    confidences = [line.confidence for line in lines if line.confidence is not None]
    block = Block(
        kind="code" if code else "list_item" if _LIST_ITEM.match(text) else "paragraph",
        text=text,
        bbox=_bounds(lines),
        font_size_points=round(size, 1),
        bold=bold,
        confidence=min(confidences) if confidences else None,
    )
    level = 0 if code else _heading_level(block, len(lines), raw.route, body_size, heading_sizes)
    if level == 0:
        return block
    return Block("heading", text, block.bbox, level, block.font_size_points, bold)


def _heading_level(
    block: Block, lines: int, route: str, body_size: float, heading_sizes: Sequence[float]
) -> int:
    size = block.font_size_points or 0.0
    if lines > 3 or len(block.text) > _HEADING_CHARACTERS or block.text.endswith((",", ";")):
        return 0
    scale = _OCR_HEADING_SCALE if route == "ocr" else _HEADING_SCALE
    if size >= body_size * scale and any(char.isalpha() for char in block.text):
        return 1 + sum(1 for other in heading_sizes if other > size)
    if block.bold and size >= body_size - 0.5 and not block.text.endswith((".", ":")):
        return 1 + len(heading_sizes)
    return 0


def join_lines(lines: Sequence[Line], words: frozenset[str]) -> str:
    """One paragraph of several lines.

    A hyphen at a line end is dropped only if the joined word stands elsewhere in the document
    (`words`, case folded); otherwise it is kept, for it may belong to a compound or a code.
    """
    text = lines[0].text.strip()
    for line in lines[1:]:
        following = line.text.strip()
        if text.endswith("-") and following[:1].isalnum():
            head, tail = _tail_word(text[:-1]), _head_word(following)
            attested = (head + tail).casefold() in words
            text = (text[:-1] if attested and following[0].islower() else text) + following
        elif _joins_without_space(text, following):
            text += following
        else:
            text = f"{text} {following}"
    return text


def _tail_word(text: str) -> str:
    words = _WORD.findall(text.rsplit(maxsplit=1)[-1]) if text.strip() else []
    return words[-1] if words else ""


def _head_word(text: str) -> str:
    match = _WORD.match(text)
    return match.group() if match else ""


def _joins_without_space(text: str, following: str) -> bool:
    return bool(text and following and _is_cjk(text[-1]) and _is_cjk(following[0]))


def _is_cjk(char: str) -> bool:
    return "\u3000" <= char <= "\u9fff" or "\uff00" <= char <= "\uffef"


def _words(raw_pages: Sequence[RawPage]) -> frozenset[str]:
    """Words that stand whole inside a line, case folded."""
    return frozenset(
        word.casefold()
        for raw in raw_pages
        for paragraph in raw.paragraphs
        for line in paragraph
        for word in _WORD.findall(line.text.rstrip("-"))
    )


def _body_size(raw_pages: Sequence[RawPage]) -> float:
    """The font size of most characters, in points."""
    sizes: Counter[float] = Counter()
    for raw in raw_pages:
        for paragraph in raw.paragraphs:
            for line in paragraph:
                sizes[round(line.font_size_points, 1)] += len(line.text)
    return max(sizes, key=lambda size: (sizes[size], -size)) if sizes else 0.0


def _heading_sizes(raw_pages: Sequence[RawPage], body_size: float) -> list[float]:
    """Distinct sizes clearly above the body's, largest first. OCR pages do not vote."""
    sizes = {
        round(line.font_size_points, 1)
        for raw in raw_pages
        if raw.route != "ocr"
        for paragraph in raw.paragraphs
        for line in paragraph
        if line.font_size_points >= body_size * _HEADING_SCALE
    }
    return sorted(sizes, reverse=True)


def _furniture(raw_pages: Sequence[RawPage]) -> frozenset[str]:
    """Keys of margin lines that repeat over the document (running heads, page numbers)."""
    if len(raw_pages) < _FURNITURE_PAGES:
        return frozenset()
    pages_with: Counter[str] = Counter()
    for raw in raw_pages:
        keys = {
            _furniture_key(line)
            for paragraph in raw.paragraphs
            for line in paragraph
            if _in_margin(line.bbox, raw)
        }
        pages_with.update(keys)
    needed = max(_FURNITURE_PAGES, _FURNITURE_SHARE * len(raw_pages))
    return frozenset(key for key, count in pages_with.items() if count >= needed)


def _is_furniture(line: Line, raw: RawPage, furniture: frozenset[str]) -> bool:
    return _in_margin(line.bbox, raw) and _furniture_key(line) in furniture


def _furniture_key(line: Line) -> str:
    return re.sub(r"\d+", "#", line.text.strip().casefold())


def _in_margin(box: BBox, raw: RawPage) -> bool:
    margin = _MARGIN_SHARE * raw.height_points
    return box.y1 <= margin or box.y0 >= raw.height_points - margin


def _continued_header(table: Table, last: tuple[Table, str] | None) -> str | None:
    """The header of the last page's table if this one, at the top of its page, goes on with it."""
    if last is None:
        return None
    before, header = last
    same_columns = len(before.rows[0]) == len(table.rows[0])
    return header if same_columns and abs(before.bbox.x0 - table.bbox.x0) < 6 else None


def _table_blocks(table: Table, header: str | None) -> tuple[list[Block], str]:
    rows = [_markdown_row(row) for row in table.rows]
    if header is None:
        header = rows[0]
    elif rows[0] == header:  # repeated after the page break
        rows = rows[1:]
    return [Block("table_row", row, table.bbox, header=header) for row in rows], header


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _is_on_top(table: Table, blocks: Sequence[Block]) -> bool:
    return all(block.bbox is None or block.bbox.y0 > table.bbox.y0 for block in blocks)


def _insert(blocks: list[Block], rows: Sequence[Block], box: BBox) -> list[Block]:
    """Put a table's rows between what stands above and below it in its own column."""
    placed = [(i, block.bbox) for i, block in enumerate(blocks) if block.bbox]
    column = [(i, other) for i, other in placed if other.x0 < box.x1 and box.x0 < other.x1]
    column = column or placed
    after = column[-1][0] + 1 if column else 0
    position = next((i for i, other in column if other.y0 >= box.y0), after)
    return [*blocks[:position], *rows, *blocks[position:]]


def _bounds(lines: Sequence[Line]) -> BBox:
    return BBox(
        min(line.bbox.x0 for line in lines),
        min(line.bbox.y0 for line in lines),
        max(line.bbox.x1 for line in lines),
        max(line.bbox.y1 for line in lines),
    )
