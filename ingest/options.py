"""What decides the outcome of parsing a file, and its hash: the parser configuration."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from ingest.identity import CHUNKER_VERSION
from ingest.ocr.engines import EngineName
from ingest.pdf.base import PdfEngine
from ingest.readers.base import ReadLimits
from ingest.triage import Thresholds
from ingest.vlm.base import Endpoint
from ingest.vlm.session import VlmPolicy

# Rises whenever a reader gives other blocks for the same file.
READER_VERSION = "3"


@dataclass(frozen=True, slots=True)
class VlmSettings:
    """The vision model, which pages it is shown, and what a document and a tenant may spend."""

    endpoint: Endpoint
    policy: VlmPolicy = field(default_factory=VlmPolicy)
    document_tokens: int | None = None
    tenant_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ParserOptions:
    """How files are read and cut into chunks of at most `limit_tokens`.

    `passwords` are tried on encrypted files. With `contextual` each chunk is embedded behind the
    document's title and headings.
    """

    tokenizer_file: Path
    limit_tokens: int
    contextual: bool = True
    pdf_engine: PdfEngine = "mupdf"
    ocr_engine: EngineName = "rapid"
    thresholds: Thresholds = field(default_factory=Thresholds)
    limits: ReadLimits = field(default_factory=ReadLimits)
    passwords: tuple[str, ...] = field(default=(), repr=False)
    vlm: VlmSettings | None = None

    def fingerprint(self) -> str:
        """Equal for options that give equal pages and chunks, hexadecimal.

        Passwords, keys and budgets are left out: they decide whether a page is read, not how.
        """
        tokenizer = hashlib.sha256(self.tokenizer_file.read_bytes()).hexdigest()
        vlm = self.vlm and (self.vlm.endpoint.url, self.vlm.endpoint.model, self.vlm.policy)
        facts = (
            READER_VERSION,
            CHUNKER_VERSION,
            tokenizer,
            replace(self, tokenizer_file=Path(), passwords=(), vlm=None),
            vlm,
        )
        return hashlib.sha256(orjson.dumps(facts, default=str)).hexdigest()


@dataclass(frozen=True, slots=True)
class ParserSpec:
    """What a parser process needs to know.

    `timeout_s` and `memory_bytes` bound one document. `home` is for files that an engine keeps.
    """

    options: ParserOptions
    home: Path
    ocr_threads: int = 1
    timeout_s: float = 600.0
    memory_bytes: int = 2 << 30
