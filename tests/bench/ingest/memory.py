"""Resident memory of a parser process over many pages, and with OCR."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import psutil

from ingest.parsed import ParseRequest
from ingest.workers import ParserProcess
from tests.bench.ingest.corpora import scan_pdf, simple_pdf
from tests.bench.ingest.options import Options, parser_spec
from tests.bench.report import table

_TEXT_PAGES, _SCANS = 50, 2  # of a document
_DIFFERENT = 5  # documents, read over and over


def measure(options: Options) -> list[str]:
    """MiB after the first document, in the middle and at the end, and the most in between."""
    cases = (
        ("text", simple_pdf, _TEXT_PAGES, options.memory_pages),
        ("scans", scan_pdf, _SCANS, options.scans),
    )
    rows = [
        [name, f"{pages:,}", *asyncio.run(_resident(make, of_a_document, pages))]
        for name, make, of_a_document, pages in cases
    ]
    head = ["pages", "count", "first document, MiB", "middle", "end", "most after a document"]
    return table(head, rows)


async def _resident(
    make: Callable[[int, int], bytes], of_a_document: int, pages: int
) -> tuple[str, ...]:
    parser = ParserProcess(parser_spec())
    sizes: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{seed}.pdf") for seed in range(_DIFFERENT)]
        for seed, path in enumerate(paths):
            path.write_bytes(make(seed, of_a_document))
        try:
            for number in range(max(3, pages // of_a_document)):
                path = paths[number % _DIFFERENT]
                await parser.parse(
                    ParseRequest(path, path.as_uri(), "bench", "bench", UUID(int=number), 1)
                )
                [child] = (  # the tables before this one leave a database server
                    one
                    for one in psutil.Process().children()
                    if "ingest.parser_process" in one.cmdline()
                )
                sizes.append(child.memory_info().rss / 2**20)
        finally:
            parser.close()
    shown = sizes[0], sizes[len(sizes) // 2], sizes[-1], max(sizes)
    return tuple(f"{size:,.0f}" for size in shown)
