"""Progress for nobody."""

from __future__ import annotations

from collections.abc import Mapping


class Silent:
    """See Progress."""

    def start(self, documents: int) -> None:
        """See Progress."""

    def advance(self, source: str, pages: Mapping[str, int], errors: int) -> None:
        """See Progress."""
