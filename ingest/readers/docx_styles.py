"""What the paragraph styles of a DOCX say: heading level and list, through their parents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ingest.readers.zipped import attribute, local_name

_MAX_PARENTS = 20


@dataclass(frozen=True, slots=True)
class ParagraphFormat:
    """Facts of a paragraph: heading level (0 for none), the list it is in, its level there."""

    heading_level: int = 0
    number: str | None = None
    list_level: int | None = None
    style: str = ""
    is_list: bool = False


class Styles:
    """The styles part; `None` stands for a document without one."""

    def __init__(self, root: Any | None) -> None:
        styles = (
            (child for child in root if local_name(child) == "style") if root is not None else ()
        )
        self._styles = {attribute(style, "styleId"): style for style in styles}
        self._known: dict[str, ParagraphFormat] = {}

    def format_of(self, properties: Any | None) -> ParagraphFormat:
        """The format by a paragraph's own properties (`pPr`, if any) over those of its style."""
        style = child_value(properties, "pStyle") or ""
        base = self._of_style(style)
        number, level = _numbering(properties)
        outline = child_value(properties, "outlineLvl")
        return ParagraphFormat(
            heading_level=_outline_level(outline) if outline else base.heading_level,
            number=number or base.number,
            list_level=level if level is not None else base.list_level,
            style=style,
            is_list=base.is_list or bool(number),
        )

    def _of_style(self, style: str) -> ParagraphFormat:
        if style not in self._known:
            self._known[style] = self._resolved(style)
        return self._known[style]

    def _resolved(self, style: str) -> ParagraphFormat:
        heading, number, level, is_list = 0, None, None, False
        name: str | None = style
        for _ in range(_MAX_PARENTS):
            element = self._styles.get(name)
            if element is None:
                break
            properties = child(element, "pPr")
            shown = (child_value(element, "name") or "").lower()
            outline = child_value(properties, "outlineLvl")
            heading = heading or _named_level(shown) or (_outline_level(outline) if outline else 0)
            own_number, own_level = _numbering(properties)
            number = number or own_number
            level = level if level is not None else own_level
            is_list = is_list or (shown.startswith("list") and shown != "list paragraph")
            name = child_value(element, "basedOn")
        return ParagraphFormat(heading, number, level, style, is_list or bool(number))


def child(element: Any | None, name: str) -> Any | None:
    """The first child of that name."""
    children = element if element is not None else ()
    return next((part for part in children if local_name(part) == name), None)


def child_value(element: Any | None, name: str) -> str | None:
    """The `val` of the first child of that name."""
    found = child(element, name)
    return None if found is None else attribute(found, "val")


def _numbering(properties: Any | None) -> tuple[str | None, int | None]:
    numbering = child(properties, "numPr")
    level = child_value(numbering, "ilvl")
    return child_value(numbering, "numId"), int(level) if level else None


def _named_level(name: str) -> int:
    if name == "title":
        return 1
    level = name.removeprefix("heading ")
    return int(level) if level != name and level.isdigit() else 0


def _outline_level(outline: str) -> int:
    """Levels 0 to 8 are headings; 9 is body text."""
    level = int(outline)
    return level + 1 if level < 9 else 0
