"""Ragplane: ingest documents, search them, and answer questions with citations.

People import from here only; the names of the rooms behind it are internal and may change.
"""

from __future__ import annotations

from importlib import import_module
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
from ragplane.core.schema import (
    Answer,
    Chunk,
    Citation,
    Context,
    Document,
    Hit,
    SearchResult,
    Span,
    Usage,
)

if TYPE_CHECKING:
    from pipelines.ingestion.report import IngestReport, Progress
    from ragplane.blocking import SyncPlane
    from ragplane.plane import Plane
    from retrieval.stores.base import CorpusStatus

__all__ = [
    "Answer",
    "Chunk",
    "Citation",
    "ConfigError",
    "Context",
    "CorpusStatus",
    "DeadlineError",
    "Document",
    "Hit",
    "IngestReport",
    "InputError",
    "ModelError",
    "OverloadedError",
    "Plane",
    "Progress",
    "RagplaneError",
    "SearchResult",
    "Span",
    "StageError",
    "SyncPlane",
    "UnavailableError",
    "Usage",
    "__version__",
]

_HOMES = {
    "CorpusStatus": "retrieval.stores.base",
    "IngestReport": "pipelines.ingestion.report",
    "Plane": "ragplane.plane",
    "Progress": "pipelines.ingestion.report",
    "SyncPlane": "ragplane.blocking",
}


def __getattr__(name: str) -> Any:
    # The rooms import ragplane.core, so the face can only be imported when it is asked for.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ragplane' has no attribute {name!r}")
