"""What people see while a run goes on."""

from __future__ import annotations

import re

import pytest

from ragplane.render import TerminalProgress


def test_progress_counts_up_and_names_rate_routes_and_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Behaviour 27: never backwards."""
    with TerminalProgress(quiet=False) as progress:
        progress.start(3)
        progress.advance("file:///a.pdf", {"text": 3, "ocr": 1}, 0)
        progress.advance("file:///b.pdf", {}, 1)
        progress.advance("file:///c.pdf", {"text": 2}, 1)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["[1/3] a.pdf", "[2/3] b.pdf, failed", "[3/3] c.pdf, failed"]
    assert re.fullmatch(r"[\d.]+ pages/s, 1 ocr, 5 text, 2 errors", progress.facts())


def test_progress_is_silent_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    """Behaviour 27."""
    with TerminalProgress(quiet=True) as progress:
        progress.start(1)
        progress.advance("file:///a.pdf", {"text": 1}, 0)
    assert capsys.readouterr() == ("", "")
