"""Retry-After, in the two forms that RFC 9110 allows; the rest is tested against a server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ingest.vlm.client import retry_after_s

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 120 ", 120.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("-5", None),
    ],
)
def test_the_wait_that_a_server_asks_for(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, NOW) == seconds
