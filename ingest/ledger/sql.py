"""The named statements of ledger.sql."""

from __future__ import annotations

from retrieval.stores.sql import named_statements


def statement(name: str) -> bytes:
    """The statement of that name."""
    return named_statements("ingest.ledger", "ledger.sql")[name].encode()
