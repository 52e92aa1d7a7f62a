"""Routes of pages by what was measured on them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingest.triage import Thresholds, decide, unmapped_share
from ragplane.core.schema import PageSignals, Route

GOOD = PageSignals(characters=1500, words=250, unmapped_share=0.0, image_coverage=0.0, drawings=0)
EMPTY = replace(GOOD, characters=0, words=0)


@pytest.mark.parametrize(
    ("signals", "route"),
    [
        (GOOD, "text"),
        (replace(GOOD, unmapped_share=0.02), "text"),  # a few U+FFFD are no reason to recognise
        (replace(GOOD, unmapped_share=0.25), "ocr"),
        (replace(GOOD, unmapped_share=0.9), "ocr"),  # a layer of glyph numbers
        (replace(GOOD, image_coverage=0.3), "text"),  # a page with a picture
        (replace(GOOD, image_coverage=1.0), "text"),  # text on a background image
        (replace(GOOD, image_coverage=1.0, invisible_characters=1500), "ocr"),  # scan with a layer
        (replace(GOOD, image_coverage=1.0, characters=20), "ocr"),  # scan with a stamp
        (replace(GOOD, characters=20), "text"),  # a short page
        (EMPTY, "blank"),
        (replace(EMPTY, characters=2), "blank"),
        (replace(EMPTY, image_coverage=0.01), "blank"),  # specks
        (replace(EMPTY, image_coverage=0.5), "ocr"),
        (replace(EMPTY, drawings=500), "ocr"),  # letters as outlines
        (replace(EMPTY, drawings=4), "blank"),  # a frame
    ],
)
def test_route_follows_the_signals(signals: PageSignals, route: Route) -> None:
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
    ],
)
def test_same_signals_replay_under_other_thresholds(
    signals: PageSignals, thresholds: Thresholds, route: Route
) -> None:
    assert decide(signals).route != route
    assert decide(signals, thresholds).route == route


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0.0),
        (" \n", 0.0),
        ("plain text, naïve 日本", 0.0),
        ("ab\ufffd\ufffd", 0.5),
        ("\ue000\ue001 \U000f0001", 1.0),  # private use
        ("a\x02b\x9f", 0.5),  # controls
    ],
)
def test_unmapped_share_counts_characters_that_stand_for_none(text: str, share: float) -> None:
    assert unmapped_share(text) == share
