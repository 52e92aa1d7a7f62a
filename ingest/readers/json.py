"""JSON and JSON Lines: records as table rows where they are alike, else as `path: value` lines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from ingest.encoding import decode_text
from ingest.parsed import ParsedDocument
from ingest.readers.base import ReadContext
from ingest.readers.flowing import flowing_document
from ingest.readers.rows import table_blocks
from ragplane.core.errors import StageError
from ragplane.core.schema import Block

_MAX_PATH_CHARACTERS = 200
_MIN_FILLED = 0.5  # a table of records has at least this share of its cells filled
_SNIFFED_LINES = 5


def read_json(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read JSON or JSON Lines as one page; numbers as they are written.

    A line of JSON Lines that is not valid is kept as it is. Raises StageError `parse` for a file
    nested too deeply.
    """
    started = time.perf_counter()
    text = decode_text(content).strip()
    try:
        blocks = list(_document_blocks(text))
    except RecursionError as error:
        raise StageError("parse", "the JSON is nested too deeply") from error
    return flowing_document("application/json", blocks, context, started)


def is_json(text: str) -> bool:
    """Whether the whole text is an object or array, or its lines are."""
    text = text.strip()
    if text[:1] not in ("{", "["):
        return False
    try:
        if text[-1:] in ("}", "]") and _is_valid(text):
            return True
        lines = text.split("\n", _SNIFFED_LINES)
        return len(lines) > 1 and all(
            line[:1] in ("{", "[") and _is_valid(line) for line in lines[:_SNIFFED_LINES][:-1]
        )
    except RecursionError:
        return True  # the reader names the error


def _is_valid(text: str) -> bool:
    try:
        _load(text)
    except ValueError:
        return False
    return True


def _load(text: str) -> Any:
    return json.loads(text, parse_int=str, parse_float=str)


def _document_blocks(text: str) -> Iterator[Block]:
    try:
        yield from _blocks(_load(text), "")
    except json.JSONDecodeError:
        yield from _lines_blocks(text.split("\n"))


def _lines_blocks(lines: Sequence[str]) -> Iterator[Block]:
    records: list[Any] = []
    for line in lines:
        if not line.strip():
            continue
        if _is_valid(line):
            records.append(_load(line))
            continue
        yield from _records(records, "")
        yield Block("paragraph", line)
        records = []
    yield from _records(records, "")


def _blocks(value: Any, path: str) -> Iterator[Block]:
    if isinstance(value, dict):
        yield from _object(value, path)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        yield from _records(value, path)
    else:
        yield Block("paragraph", _line(path, _leaf(value)))


def _object(value: dict[str, Any], path: str) -> Iterator[Block]:
    """One paragraph for each run of plain members, in order; the others by themselves."""
    lines: list[str] = []
    for key, member in value.items():
        inner = _inner(path, f".{key}" if path else key)
        if _is_leaf(member):
            lines.append(_line(inner, _leaf(member)))
            continue
        if lines:
            yield Block("paragraph", "\n".join(lines))
            lines = []
        yield from _blocks(member, inner)
    if lines:
        yield Block("paragraph", "\n".join(lines))


def _records(values: list[Any], path: str) -> Iterator[Block]:
    if _is_table(values):
        columns = list(dict.fromkeys(key for record in values for key in record))
        if path:
            yield Block("paragraph", f"{path}:")
        rows = ([_leaf(record.get(key)) for key in columns] for record in values)
        yield from table_blocks([columns, *rows])
        return
    for index, value in enumerate(values):
        yield from _blocks(value, _inner(path, f"[{index}]"))


def _is_table(values: list[Any]) -> TypeGuard[list[dict[str, Any]]]:
    """Whether these are several flat objects that share most of their keys."""
    if len(values) < 2 or not all(isinstance(value, dict) for value in values):
        return False
    columns = {key for record in values for key in record}
    filled = sum(map(len, values))
    return filled >= _MIN_FILLED * len(columns) * len(values) > 0 and all(
        _is_leaf(member) for record in values for member in record.values()
    )


def _is_leaf(value: Any) -> bool:
    if isinstance(value, list):
        return not any(isinstance(item, dict | list) for item in value)
    return not isinstance(value, dict) or not value


def _leaf(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_leaf, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None or value == {} else str(value)


def _line(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _inner(path: str, step: str) -> str:
    """The path with a step more, its beginning cut off where it is too long."""
    return (
        path if len(path) <= _MAX_PATH_CHARACTERS else f"…{path[-_MAX_PATH_CHARACTERS:]}"
    ) + step
