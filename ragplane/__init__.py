"""Ragplane: ingest documents, search them, and answer questions with citations.

People import from here only; the names of the rooms behind it are internal and may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragplane.core import __version__
from ragplane.core.errors import (
    ConfigError,
    DeadlineError,
    InputError,
    ModelError,
    OverloadedError,
    RagplaneError,
    StageError,
    UnavailableError,
)
from ragplane.core.schema import Answer, Chunk, Citation, Context, Document, Hit, SearchResult, Span

if TYPE_CHECKING:
    from ragplane.plane import Plane

__all__ = [
    "Answer",
    "Chunk",
    "Citation",
    "ConfigError",
    "Context",
    "DeadlineError",
    "Document",
    "Hit",
    "InputError",
    "ModelError",
    "OverloadedError",
    "Plane",
    "RagplaneError",
    "SearchResult",
    "Span",
    "StageError",
    "UnavailableError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # The rooms import ragplane.core, so the face can only be imported when it is asked for.
    if name == "Plane":
        from ragplane.plane import Plane

        return Plane
    raise AttributeError(f"module 'ragplane' has no attribute {name!r}")
