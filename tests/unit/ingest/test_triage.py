"""Routes of pages by what was measured on them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ingest.triage import Thresholds, decide
from ragplane.core.errors import ConfigError
from ragplane.core.schema import PageSignals, Route

GOOD = PageSignals(characters=1500, words=250, unmapped_share=0.0, image_coverage=0.0, drawings=0)
EMPTY = replace(GOOD, characters=0, words=0)
SCAN = replace(GOOD, image_coverage=1.0, invisible_characters=1500)


@pytest.mark.parametrize(
    ("signals", "route"),
    [
        (GOOD, "text"),
        (replace(GOOD, unmapped_share=0.02), "text"),  # a few U+FFFD are no reason to recognise
        (replace(GOOD, unmapped_share=0.25), "ocr"),
        (replace(GOOD, unmapped_share=0.9), "ocr"),  # a layer of glyph numbers
        (replace(GOOD, image_coverage=0.3), "text"),  # a page with a picture
        (replace(GOOD, image_coverage=1.0), "text"),  # text on a background image
        # scans with a layer that reads like words, or does not
        (replace(GOOD, image_coverage=1.0, invisible_characters=1500), "text"),
        (replace(GOOD, image_coverage=1.0, characters_under_image=1500), "text"),
        (replace(SCAN, word_likeness=0.5), "ocr"),
        (replace(SCAN, words=3), "ocr"),
        (replace(GOOD, image_coverage=1.0, characters=20), "ocr"),  # scan with a stamp
        (replace(GOOD, characters=20), "text"),  # a short page
        (replace(GOOD, unmapped_share=0.2, unmapped_font_share=0.4), "ocr"),
        (replace(GOOD, unmapped_share=0.1, unmapped_font_share=0.1), "text"),  # a font of symbols
        (replace(GOOD, word_likeness=0.2), "ocr"),  # letters mapped to other letters
        (replace(GOOD, words=8, word_likeness=0.2), "text"),  # too few to judge
        (replace(GOOD, columns=3), "text"),
        (replace(GOOD, columns=5), "layout"),
        (replace(GOOD, columns=5, ruled_lines=12), "text"),  # a ruled grid
        (replace(GOOD, ruled_lines=120), "layout"),
        (replace(GOOD, image_coverage=1.0, columns=5), "layout"),
        (replace(GOOD, rotation=90), "text"),
        (EMPTY, "blank"),
        (replace(EMPTY, characters=2), "blank"),
        (replace(EMPTY, image_coverage=0.01), "blank"),  # specks
        (replace(EMPTY, image_coverage=0.5), "ocr"),
        (replace(EMPTY, drawings=500), "ocr"),  # letters as outlines
        (replace(EMPTY, drawings=4), "blank"),  # a frame
        (replace(EMPTY, drawings=100, ruled_lines=90), "blank"),  # squared paper
    ],
)
def test_route_follows_the_signals(signals: PageSignals, route: Route) -> None:
    """Behaviours 1 and 4."""
    decision = decide(signals)
    assert decision.route == route
    assert decision.reason


@pytest.mark.parametrize(
    ("signals", "thresholds", "route"),
    [
        (replace(GOOD, unmapped_share=0.02), Thresholds(unmapped_share=0.01), "ocr"),
        (replace(EMPTY, characters=2), Thresholds(blank_characters=1), "text"),
        (replace(EMPTY, image_coverage=0.5), Thresholds(blank_image_coverage=0.6), "blank"),
        (replace(EMPTY, drawings=4), Thresholds(outlined_drawings=4), "ocr"),
        (
            replace(GOOD, image_coverage=0.3, characters=20),
            Thresholds(scan_image_coverage=0.3),
            "ocr",
        ),
        (replace(GOOD, image_coverage=1.0, characters=20), Thresholds(scan_characters=5), "text"),
        (replace(SCAN, word_likeness=0.5), Thresholds(layer_word_likeness=0.5), "text"),
        (replace(SCAN, words=3), Thresholds(layer_words=3), "text"),
        (replace(GOOD, word_likeness=0.2), Thresholds(garbled_word_likeness=0.1), "text"),
        (replace(GOOD, words=8, word_likeness=0.2), Thresholds(garbled_words=8), "ocr"),
        (replace(GOOD, columns=3), Thresholds(layout_columns=3), "layout"),
        (replace(GOOD, ruled_lines=12), Thresholds(layout_rules=10), "layout"),
        (replace(GOOD, unmapped_font_share=0.2), Thresholds(unmapped_font_share=0.2), "ocr"),
    ],
)
def test_same_signals_replay_under_other_thresholds(
    signals: PageSignals, thresholds: Thresholds, route: Route
) -> None:
    """Behaviour 1."""
    assert decide(signals).route != route
    assert decide(signals, thresholds).route == route


def test_thresholds_by_name_leave_the_others_alone() -> None:
    """Behaviour 1."""
    thresholds = Thresholds.from_mapping({"scan_characters": 5, "unmapped_share": 0.5})
    assert thresholds == Thresholds(scan_characters=5, unmapped_share=0.5)
    assert Thresholds.from_mapping({}) == Thresholds()
    assert Thresholds.from_mapping({"unmapped_share": 1}).unmapped_share == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scan_caracters": 5, "b": 1}, "no such threshold: b, scan_caracters"),
        ({"scan_characters": "5"}, "scan_characters must be a whole number: '5'"),
        ({"scan_characters": 5.5}, "scan_characters must be a whole number: 5.5"),
        ({"scan_characters": True}, "scan_characters must be a whole number: True"),
        ({"scan_characters": -1}, "scan_characters must be 0 or more: -1"),
        ({"unmapped_share": 25}, "unmapped_share must be from 0 to 1: 25"),
        ({"unmapped_share": float("nan")}, "unmapped_share must be from 0 to 1: nan"),
    ],
)
def test_wrong_thresholds_are_refused_by_name(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        Thresholds.from_mapping(values)
