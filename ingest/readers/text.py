"""Plain text in any encoding: paragraphs between empty lines."""

from __future__ import annotations

import re
import time

from ingest.encoding import decode_text
from ingest.parsed import ParsedDocument, flowing_page
from ingest.readers.base import ReadContext, title_or_name
from ragplane.core.schema import Block

_EMPTY_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def read_text(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read a text file as one page; line breaks inside a paragraph are kept."""
    started = time.perf_counter()
    text = decode_text(content).replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    blocks = [
        Block("paragraph", paragraph.strip())
        for paragraph in _EMPTY_LINES.split(text)
        if paragraph.strip()
    ]
    page = flowing_page(blocks, time.perf_counter() - started)
    return ParsedDocument(title_or_name(None, context.name), "text/plain", (page,))
