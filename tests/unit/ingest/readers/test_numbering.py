"""Labels of numbered paragraphs."""

from __future__ import annotations

from typing import Any

import pytest
from lxml import etree

from ingest.readers.numbering import Numbering, formatted

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def level(index: int, kind: str, text: str, start: int = 1, style: str = "") -> str:
    linked = f'<w:pStyle w:val="{style}"/>' if style else ""
    return (
        f'<w:lvl w:ilvl="{index}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/>{linked}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def numbering(*parts: str) -> Any:
    return etree.fromstring(f'<w:numbering xmlns:w="{W}">{"".join(parts)}</w:numbering>')


OUTLINE = (
    '<w:abstractNum w:abstractNumId="7">'
    + level(0, "decimal", "%1.", style="Heading1")
    + level(1, "lowerLetter", "%1.%2)", style="Heading2")
    + level(2, "bullet", "•")
    + "</w:abstractNum>"
)
NUM = '<w:num w:numId="3"><w:abstractNumId w:val="7"/></w:num>'
RESTARTED = (
    '<w:num w:numId="4"><w:abstractNumId w:val="7"/>'
    '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>'
)


def test_deeper_levels_start_again_and_name_those_above() -> None:
    found = Numbering(numbering(OUTLINE, NUM))
    labels = [found.label("3", at) for at in (0, 1, 1, 0, 1, 2)]
    assert labels == ["1.", "1.a)", "1.b)", "2.", "2.a)", ""]


def test_lists_of_one_definition_count_on_unless_restarted() -> None:
    found = Numbering(numbering(OUTLINE, NUM, RESTARTED))
    labels = [found.label(number, 0) for number in ("3", "4", "4", "3")]
    assert labels == ["1.", "5.", "6.", "7."]


def test_level_is_that_of_the_linked_style() -> None:
    found = Numbering(numbering(OUTLINE, NUM))
    assert [found.level_of_style("3", style) for style in ("Heading2", "Other")] == [1, 0]


def test_definition_by_a_list_style_is_followed() -> None:
    styled = OUTLINE.replace("<w:lvl ", '<w:styleLink w:val="S"/><w:lvl ', 1)
    link = '<w:abstractNum w:abstractNumId="8"><w:numStyleLink w:val="S"/></w:abstractNum>'
    found = Numbering(numbering(styled, link, NUM.replace('"7"', '"8"')))
    assert found.label("3", 0) == "1."


@pytest.mark.parametrize("root", [None, numbering()], ids=["no part", "empty part"])
def test_unknown_list_has_no_label(root: Any) -> None:
    assert Numbering(root).label("3", 0) == ""


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (4, "decimal", "4"),
        (4, "decimalZero", "04"),
        (28, "lowerLetter", "bb"),
        (3, "upperLetter", "C"),
        (1994, "upperRoman", "MCMXCIV"),
        (4, "lowerRoman", "iv"),
        (0, "lowerRoman", "0"),
        (2, "chineseCounting", "2"),
    ],
)
def test_formats(number: int, kind: str, text: str) -> None:
    assert formatted(number, kind) == text
