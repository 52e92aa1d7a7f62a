"""One document from a file to chunks: the unit of work, free of where it runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ingest.chunking import chunk_document
from ingest.ocr import LazyOcr
from ingest.ocr.engines import make_engine
from ingest.options import ParserSpec
from ingest.parsed import ParsedDocument, ParseRequest, ParseResult, RawPage
from ingest.readers.base import ReadContext
from ingest.sniff import reader_for
from ingest.vlm.base import Endpoint, VisionReader
from ingest.vlm.budget import Budget
from ingest.vlm.session import VlmSession
from ragplane.core.errors import StageError, describe
from ragplane.core.schema import Document, Page
from ragplane.core.tokens import TextTokenizer

Finished = Callable[[str], Mapping[int, RawPage]]


class Parser:
    """Parses and chunks documents with one tokenizer and one OCR engine."""

    def __init__(self, spec: ParserSpec) -> None:
        self._options = spec.options
        self._tokenizer = TextTokenizer(spec.options.tokenizer_file)
        self._ocr = LazyOcr(
            lambda: make_engine(spec.options.ocr_engine, spec.ocr_threads, spec.home)
        )
        self._vision = _vision_reader(spec.options.vlm.endpoint) if spec.options.vlm else None

    def parse(
        self,
        request: ParseRequest,
        finished: Finished = lambda _: {},
        on_page: Callable[[RawPage], None] = lambda _: None,
    ) -> ParseResult:
        """Parse one file. Raises StageError naming the stage, the page and the cause.

        `finished` gives the pages that are known already of the content with a hash; `on_page`
        hears of each other page.
        """
        content = read_file(request.path)
        sha256 = hashlib.sha256(content).hexdigest()
        options = self._options
        context = ReadContext(
            request.path.name,
            self._ocr,
            options.thresholds,
            limits=options.limits,
            passwords=options.passwords,
            finished=finished(sha256),
            on_page=on_page,
            pdf_engine=options.pdf_engine,
            vlm=self._session(request),
        )
        parsed = reader_for(content, request.path.name)(content, context)
        document = Document(
            id=request.document_id,
            tenant=request.tenant,
            corpus=request.corpus,
            source=request.source,
            sha256=sha256,
            mime=parsed.mime,
            title=parsed.title,
            generation=request.generation,
        )
        pages = _with_notes(parsed)
        chunks = chunk_document(
            document,
            pages,
            self._tokenizer,
            options.limit_tokens,
            contextual=options.contextual,
        )
        return ParseResult(document, pages, tuple(chunks))

    def _session(self, request: ParseRequest) -> VlmSession:
        """The vision model, for this document only; without one, pages that need it say so."""
        vlm = self._options.vlm
        if vlm is None:
            return VlmSession(None)
        budget = Budget(
            vlm.document_tokens, vlm.tenant_tokens, tenant_spent=request.vlm_tokens_spent
        )
        return VlmSession(self._vision, vlm.policy, budget)


def _vision_reader(endpoint: Endpoint) -> VisionReader:
    from ingest.vlm.client import HttpVisionReader  # its HTTP library takes a while to import

    return HttpVisionReader(endpoint)


def read_file(path: Path) -> bytes:
    """The bytes of a file. Raises StageError `parse` with the system's own reason."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StageError("parse", error.strerror or describe(error)) from error


def _with_notes(parsed: ParsedDocument) -> tuple[Page, ...]:
    """The pages, with the notes on the whole document at the first of them."""
    if not parsed.notes or not parsed.pages:
        return parsed.pages
    first, *rest = parsed.pages
    return (replace(first, notes=(*parsed.notes, *first.notes)), *rest)
