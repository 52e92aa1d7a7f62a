"""A maker of pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ingest.parsed import Line, RawPage
from ragplane.core.schema import BBox, PageSignals


@pytest.fixture
def raw_page() -> Callable[..., RawPage]:
    def make(number: int, **values: Any) -> RawPage:
        line = Line(f"page {number}", BBox(1, 2, 3, 4), 10.0)
        page: dict[str, Any] = {
            "number": number,
            "width_points": 595.0,
            "height_points": 842.0,
            "rotation": 0,
            "route": "text",
            "reason": "the text layer is good",
            "signals": PageSignals(6, 2, 0.0, 0.0, 0),
            "seconds": 0.25,
            "paragraphs": ((line,),),
        }
        return RawPage(**page | values)

    return make
