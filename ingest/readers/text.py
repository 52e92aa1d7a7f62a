"""Plain text in any encoding: paragraphs between empty lines."""

from __future__ import annotations

import re
import time

from ingest.encoding import decode_text
from ingest.parsed import ParsedDocument
from ingest.readers.base import ReadContext
from ingest.readers.flowing import flowing_document
from ragplane.core.schema import Block

_EMPTY_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def read_text(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read a text file as one page; line breaks inside a paragraph are kept."""
    started = time.perf_counter()
    blocks = text_blocks(decode_text(content))
    return flowing_document("text/plain", blocks, context, started)


def text_blocks(text: str) -> list[Block]:
    """A paragraph for each run of lines between empty ones."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return [
        Block("paragraph", paragraph.strip())
        for paragraph in _EMPTY_LINES.split(lines)
        if paragraph.strip()
    ]
