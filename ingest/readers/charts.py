"""Charts of DrawingML: their title and a small table of categories and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ingest.readers.rows import table_blocks
from ingest.readers.zipped import attribute, local_name, xml_root
from ragplane.core.schema import Block

_MAX_POINTS = 1000
_CATEGORIES = ("cat", "xVal")
_VALUES = ("val", "yVal")


def chart_blocks(content: bytes) -> Iterator[Block]:
    """The title as a paragraph, then a row for each category, a column for each series.

    `content` is a chart part as XML. Of each series the first 1,000 points are given.
    """
    root = xml_root(content)
    series = [part for part in root.iter() if local_name(part) == "ser"]
    title = next((part for part in root.iter() if local_name(part) == "title"), None)
    if title is not None and not any(local_name(up).endswith("Ax") for up in title.iterancestors()):
        yield Block("paragraph", " ".join(_text(title, ("t", "v")).split()))
    yield from table_blocks(_rows(series))


def _rows(series: list[Any]) -> Iterator[list[str]]:
    if not series:
        return
    yield ["", *(_text(_part(one, ("tx",)), ("v",)) for one in series)]
    names = _points(_part(series[0], _CATEGORIES))
    values = [_points(_part(one, _VALUES)) for one in series]
    indexes = sorted(set(names).union(*values))
    for index in indexes:
        yield [names.get(index, ""), *(column.get(index, "") for column in values)]


def _points(data: Any | None) -> dict[int, str]:
    """The cached points by index; of categories on several levels, the innermost level."""
    level = None if data is None else next((p for p in data.iter() if local_name(p) == "lvl"), data)
    points: dict[int, str] = {}
    for point in level.iter() if level is not None else ():
        if local_name(point) == "pt" and len(points) < _MAX_POINTS:
            points[int(attribute(point, "idx") or 0)] = _text(point, ("v",))
    return points


def _part(series: Any, names: tuple[str, ...]) -> Any | None:
    return next((part for part in series if local_name(part) in names), None)


def _text(element: Any | None, names: tuple[str, ...]) -> str:
    parts = element.iter() if element is not None else ()
    return "".join(part.text or "" for part in parts if local_name(part) in names)
