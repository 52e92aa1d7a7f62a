"""What a reader is given and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ingest.ocr import OcrEngine
from ingest.parsed import ParsedDocument
from ingest.triage import Thresholds


@dataclass(frozen=True, slots=True)
class ReadContext:
    """The name of the file (for a title, never for its type) and the tools a reader may use."""

    name: str
    ocr: OcrEngine
    thresholds: Thresholds


Reader = Callable[[bytes, ReadContext], ParsedDocument]


def title_or_name(title: str | None, name: str) -> str:
    """A trimmed title, or the file's name without its ending, spelt as words."""
    if title and title.strip():
        return " ".join(title.split())
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    return stem.replace("_", " ").replace("-", " ").strip() or name
