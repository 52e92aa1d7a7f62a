"""How much is measured, and what our parts are opened with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ingest.options import ParserSpec
from pipelines.ingestion.opening import parser_options
from ragplane.core.config import Settings, load_settings
from tests.bench.processes import ROOT

HOME = ROOT / ".cache" / "bench" / "ingest"  # keeps exported models between runs


@dataclass(frozen=True, slots=True)
class Options:
    """`pages` of text, `scans` of OCR, `chunks` about to embed, `documents` for the re-run."""

    rounds: int
    pages: int
    scans: int
    chunks: int
    documents: int
    memory_pages: int


def settings(**changes: Any) -> Settings:
    """The environment's settings, with models in our own folder."""
    return load_settings(**({"home": HOME} | changes))


def parser_spec(**changes: Any) -> ParserSpec:
    """What a parser of these settings needs, with OCR of one thread."""
    return ParserSpec(parser_options(settings(**changes)), HOME)
