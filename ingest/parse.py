"""One document from a file to chunks: the unit of work, free of where it runs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ingest.chunking import chunk_document
from ingest.identity import document_id
from ingest.ocr import LazyOcr, RapidOcrEngine
from ingest.parsed import ParseRequest, ParseResult
from ingest.readers.base import ReadContext
from ingest.sniff import reader_for
from ingest.triage import Thresholds
from ragplane.core.errors import StageError, describe
from ragplane.core.schema import Document
from ragplane.core.tokens import TextTokenizer


class Parser:
    """Parses and chunks documents with one tokenizer and one OCR engine."""

    def __init__(self, tokenizer_file: Path, limit_tokens: int, ocr_threads: int) -> None:
        self._tokenizer = TextTokenizer(tokenizer_file)
        self._limit_tokens = limit_tokens
        self._ocr = LazyOcr(lambda: RapidOcrEngine(ocr_threads))

    def parse(self, request: ParseRequest) -> ParseResult:
        """Parse one file. Raises StageError naming the stage, the page and the cause."""
        content = read_file(request.path)
        context = ReadContext(request.path.name, self._ocr, Thresholds())
        parsed = reader_for(content, request.path.name)(content, context)
        document = Document(
            id=document_id(request.tenant, request.corpus, request.source),
            tenant=request.tenant,
            corpus=request.corpus,
            source=request.source,
            sha256=hashlib.sha256(content).hexdigest(),
            mime=parsed.mime,
            title=parsed.title,
            generation=request.generation,
        )
        chunks = chunk_document(document, parsed.pages, self._tokenizer, self._limit_tokens)
        return ParseResult(document, parsed.pages, tuple(chunks))


def read_file(path: Path) -> bytes:
    """The bytes of a file. Raises StageError `parse` with the system's own reason."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StageError("parse", error.strerror or describe(error)) from error
