"""Progress for nobody."""

from __future__ import annotations


class Silent:
    """See Progress."""

    def start(self, documents: int) -> None:
        """See Progress."""

    def advance(self, source: str, pages: int) -> None:
        """See Progress."""
