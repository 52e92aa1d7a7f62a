"""Ligatures, hyphens and spaces."""

from __future__ import annotations

import pytest

from ingest.characters import resolved


@pytest.mark.parametrize(
    ("drawn", "meant"),
    [
        (
            "e\ufb03cient \ufb01rst \ufb02oor o\ufb00er wa\ufb04e be\ufb06",
            "efficient first floor offer waffle best",
        ),
        ("\ufe8d\ufedf\ufecc\ufeae\ufe91\ufef4\ufe94", "العربية"),
        ("\ufefb", "لا"),
        ("\ufb2a", "\u05e9\u05c1"),
        ("well\u00adknown AB\u201012", "well-known AB-12"),
        ("a\x00b", "ab"),
        ("東 京 都 の 人口", "東京都の人口"),
        ("東京 Tower 333 メートル", "東京 Tower 333 メートル"),
    ],
)
def test_text_is_what_was_meant(drawn: str, meant: str) -> None:
    """Behaviour 15."""
    assert resolved(drawn) == meant


@pytest.mark.parametrize(
    "text", ["x² + ½ ≈ 10⁻³ №5 ™", "ＡＢＣ １２３", "한국어 문장", "第一章\u3000総則", "Ångström"]
)
def test_other_characters_stay(text: str) -> None:
    """Behaviour 15."""
    assert resolved(text) == text
