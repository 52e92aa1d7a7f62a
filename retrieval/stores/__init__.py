"""Where documents, their chunks and their vectors are kept, and found again."""

from __future__ import annotations

from ragplane.core.config import Settings
from retrieval.stores.base import Store
from retrieval.stores.open import open_at

__all__ = ["open_store"]


async def open_store(settings: Settings) -> Store:
    """The store these settings name. Raises UnavailableError or ConfigError."""
    return await open_at(settings.store, settings, settings.store_api_key)
