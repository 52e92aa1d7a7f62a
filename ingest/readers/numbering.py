"""Labels of numbered paragraphs in WordprocessingML ("2.1", "a)"), ECMA-376 part 1, 17.9."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ingest.readers.zipped import attribute, local_name

_LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_ROMAN = [(1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
          (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Level:
    start: int
    number_format: str
    text: str
    style: str | None


@dataclass(slots=True)
class _List:
    """An abstract definition and the counters of the lists that share it."""

    levels: dict[int, _Level]
    counters: dict[int, int] = field(default_factory=dict)


class Numbering:
    """Counts the paragraphs of a document in order and tells the label of each."""

    def __init__(self, root: Any | None) -> None:
        children = list(root) if root is not None else []
        abstract = [child for child in children if local_name(child) == "abstractNum"]
        lists = {attribute(child, "abstractNumId"): _List(_levels(child)) for child in abstract}
        linked = {_value(child, "styleLink"): attribute(child, "abstractNumId")
                  for child in abstract}  # fmt: skip
        aliases = {attribute(child, "abstractNumId"): linked.get(link)
                   for child in abstract if (link := _value(child, "numStyleLink"))}  # fmt: skip
        self._lists: dict[str | None, _List] = {}
        self._restarts: dict[str | None, dict[int, int]] = {}
        for child in children:
            if local_name(child) == "num":
                target = _value(child, "abstractNumId")
                found = lists.get(aliases.get(target) or target)
                if found is not None:
                    number = attribute(child, "numId")
                    self._lists[number] = found
                    self._restarts[number] = _restarts(child)

    def level_of_style(self, number: str, style: str) -> int:
        """The level that a paragraph style is linked to in this list."""
        found = self._lists.get(number)
        levels = found.levels.items() if found else ()
        return next((index for index, level in levels if level.style == style), 0)

    def label(self, number: str, level: int) -> str:
        """The label of the next paragraph at this level; empty for a bullet."""
        found = self._lists.get(number)
        if found is None or level not in found.levels:
            return ""
        for index, start in self._restarts.pop(number, {}).items():
            found.counters[index] = start - 1
        counters = found.counters
        counters[level] = counters.get(level, found.levels[level].start - 1) + 1
        for deeper in range(level + 1, _LEVELS):
            counters.pop(deeper, None)
        if found.levels[level].number_format in ("bullet", "none"):
            return ""
        return _PLACE.sub(lambda match: _number(found, int(match[1]) - 1), found.levels[level].text)


def _number(found: _List, index: int) -> str:
    level = found.levels.get(index)
    if level is None:
        return ""
    return formatted(found.counters.get(index, level.start), level.number_format)


def formatted(number: int, number_format: str) -> str:
    """A number as letters, Roman numerals or digits."""
    kind = number_format.lower()
    if kind == "decimalzero":
        return f"{number:02d}"
    text = str(number)
    if kind.endswith("letter") and number > 0:
        text = chr(ord("a") + (number - 1) % 26) * min(1 + (number - 1) // 26, 10)
    elif kind.endswith("roman") and 0 < number < 5000:
        text = _roman(number)
    return text.upper() if number_format.startswith("upper") else text


def _roman(number: int) -> str:
    pieces = []
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        pieces.append(letters * count)
    return "".join(pieces)


def _levels(abstract: Any) -> dict[int, _Level]:
    levels = {}
    for child in abstract:
        if local_name(child) == "lvl":
            levels[int(attribute(child, "ilvl") or 0)] = _Level(
                start=int(_value(child, "start") or 0),
                number_format=_value(child, "numFmt") or "decimal",
                text=_value(child, "lvlText") or "",
                style=_value(child, "pStyle"),
            )
    return levels


def _restarts(number: Any) -> dict[int, int]:
    starts = {}
    for child in number:
        if local_name(child) == "lvlOverride" and (start := _value(child, "startOverride")):
            starts[int(attribute(child, "ilvl") or 0)] = int(start)
    return starts


def _value(element: Any, name: str) -> str | None:
    child = next((child for child in element if local_name(child) == name), None)
    return None if child is None else attribute(child, "val")
