"""Which way each page is read: a pure function of measured signals, with named thresholds."""

from __future__ import annotations

from dataclasses import dataclass

from ragplane.core.schema import PageSignals, Route


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Borders of the decision. Shares and coverages run from 0 to 1."""

    blank_characters: int = 3
    blank_image_coverage: float = 0.02
    outlined_drawings: int = 60
    scan_image_coverage: float = 0.65
    scan_characters: int = 60
    unmapped_share: float = 0.25


@dataclass(frozen=True, slots=True)
class Decision:
    """The route of a page and the reason in words."""

    route: Route
    reason: str


def decide(signals: PageSignals, thresholds: Thresholds | None = None) -> Decision:
    """Choose `text`, `ocr` or `blank` for a page with these signals."""
    limits = thresholds or Thresholds()
    visible = signals.characters - signals.invisible_characters
    if signals.characters <= limits.blank_characters:
        return _without_text_layer(signals, limits)
    if signals.unmapped_share >= limits.unmapped_share:
        return Decision("ocr", f"{signals.unmapped_share:.0%} of the glyphs have no character")
    if signals.image_coverage >= limits.scan_image_coverage:
        if visible <= limits.scan_characters:
            return Decision("ocr", "an image covers the page and its text is little or hidden")
        return Decision("text", "a text layer lies over an image")
    return Decision("text", "the text layer is good")


def _without_text_layer(signals: PageSignals, limits: Thresholds) -> Decision:
    if signals.image_coverage > limits.blank_image_coverage:
        return Decision("ocr", "an image and no text layer")
    if signals.drawings >= limits.outlined_drawings:
        return Decision("ocr", "drawn shapes and no text layer")
    return Decision("blank", "no text, no image, few drawings")


def unmapped_share(text: str) -> float:
    """Share of characters that stand for no character: U+FFFD, private use, controls."""
    visible = [char for char in text if not char.isspace()]
    if not visible:
        return 0.0
    return sum(map(_is_unmapped, visible)) / len(visible)


def _is_unmapped(char: str) -> bool:
    code = ord(char)
    return (
        code == 0xFFFD
        or 0xE000 <= code <= 0xF8FF
        or 0xF0000 <= code <= 0x10FFFD
        or (code < 0x20 or 0x7F <= code < 0xA0)
    )
