"""Which way each page is read: a pure function of measured signals, with named thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ragplane.core.errors import ConfigError
from ragplane.core.schema import PageSignals, Route


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Borders of the decision. Shares, coverages and word-likeness run from 0 to 1.

    blank: a page with no more `blank_characters` and `blank_image_coverage` is empty, unless
    `outlined_drawings` shapes may be letters drawn as outlines.
    unmapped: from `unmapped_share` of all glyphs, or `unmapped_font_share` of glyphs in fonts
    without a map to characters, the text layer is useless.
    scan: an image over `scan_image_coverage` with no more than `scan_characters` in plain sight
    is a scan; its layer is kept from `layer_words` words and `layer_word_likeness` up.
    garbled: a layer of `garbled_words` words or more, fewer than `garbled_word_likeness` of which
    look like words, has a wrong map to characters.
    layout: a page is complex from `layout_columns` columns with no more rules than columns, or from
    `layout_rules` rules.
    region: an image over `region_coverage` of a text page may hold text of its own.
    """

    blank_characters: int = 3
    blank_image_coverage: float = 0.02
    outlined_drawings: int = 60
    unmapped_share: float = 0.25
    unmapped_font_share: float = 0.3
    scan_image_coverage: float = 0.65
    scan_characters: int = 60
    layer_words: int = 5
    layer_word_likeness: float = 0.8
    garbled_words: int = 20
    garbled_word_likeness: float = 0.55
    layout_columns: int = 4
    layout_rules: int = 80
    region_coverage: float = 0.08

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Thresholds:
        """Thresholds by name, the others at their defaults.

        Raises ConfigError for a name that is none, and for a value that is no number of its kind.
        """
        known = {field.name: field.default for field in fields(cls)}
        if unknown := sorted(set(values) - set(known)):
            raise ConfigError(f"no such threshold: {', '.join(unknown)}")
        numbers: dict[str, Any] = {
            name: _number(name, value, known[name]) for name, value in values.items()
        }
        return cls(**numbers)


def _number(name: str, value: object, default: object) -> int | float:
    whole = isinstance(default, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise ConfigError(f"{name} must be {'a whole number' if whole else 'a number'}: {value!r}")
    if not (value >= 0 if whole else 0 <= value <= 1):
        raise ConfigError(f"{name} must be {'0 or more' if whole else 'from 0 to 1'}: {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class Decision:
    """The route of a page and the reason in words."""

    route: Route
    reason: str


def decide(signals: PageSignals, thresholds: Thresholds | None = None) -> Decision:
    """Choose `text`, `layout`, `ocr` or `blank` for a page with these signals.

    A page gets to `vlm` only by what its OCR showed.
    """
    limits = thresholds or Thresholds()
    if signals.characters <= limits.blank_characters:
        return _without_text_layer(signals, limits)
    if signals.unmapped_share >= limits.unmapped_share:
        return Decision("ocr", f"{signals.unmapped_share:.0%} of the glyphs have no character")
    if signals.unmapped_font_share >= limits.unmapped_font_share:
        share = f"{signals.unmapped_font_share:.0%}"
        return Decision("ocr", f"{share} of the glyphs are in fonts without a map to characters")
    in_sight = signals.characters - signals.invisible_characters - signals.characters_under_image
    is_scan = signals.image_coverage >= limits.scan_image_coverage
    if is_scan and in_sight <= limits.scan_characters:
        return _scan(signals, in_sight, limits)
    if _is_garbled(signals, limits):
        return Decision("ocr", "the text layer does not read like words")
    return _readable(signals, is_scan, limits)


def _without_text_layer(signals: PageSignals, limits: Thresholds) -> Decision:
    if signals.image_coverage > limits.blank_image_coverage:
        return Decision("ocr", "an image and no text layer")
    if signals.drawings - signals.ruled_lines >= limits.outlined_drawings:
        return Decision("ocr", "drawn shapes and no text layer")
    return Decision("blank", "no text, no image, few drawings")


def _scan(signals: PageSignals, in_sight: int, limits: Thresholds) -> Decision:
    if signals.characters - in_sight <= limits.blank_characters:
        return Decision("ocr", "an image covers the page and its text is little")
    likeness = f"word-likeness {signals.word_likeness:.2f}"
    wordy = signals.words >= limits.layer_words
    if wordy and signals.word_likeness >= limits.layer_word_likeness:
        return Decision("text", f"a scan whose text layer reads like words ({likeness})")
    return Decision("ocr", f"a scan whose text layer is little or junk ({likeness})")


def _is_garbled(signals: PageSignals, limits: Thresholds) -> bool:
    wordy = signals.words >= limits.garbled_words
    return wordy and signals.word_likeness < limits.garbled_word_likeness


def _readable(signals: PageSignals, is_scan: bool, limits: Thresholds) -> Decision:
    if signals.columns >= max(limits.layout_columns, signals.ruled_lines):
        return Decision("layout", f"{signals.columns} columns: perhaps a table without rules")
    if signals.ruled_lines >= limits.layout_rules:
        return Decision("layout", f"{signals.ruled_lines} rules: a form or an intricate table")
    if is_scan:
        return Decision("text", "a text layer lies over an image")
    return Decision("text", "the text layer is good")
