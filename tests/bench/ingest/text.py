"""Born-digital pages from file to chunks, without vectors, beside pymupdf4llm, on one core each.

Each way runs in a process of its own that is bound to one CPU, and is timed by that process's
processor time: with one busy thread that is wall time on a quiet machine.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

from ingest.parsed import ParseRequest
from ingest.pdf.base import PdfEngine
from tests.bench.ingest.corpora import complex_pdf, simple_pdf
from tests.bench.ingest.options import Options, parser_spec
from tests.bench.report import best_and_median, table

_COMPLEX_PAGES = 40
_PEER_PAGES = 5  # of pymupdf4llm a round: it reads a few pages a second
Way = Callable[[Path], float]


def measure(options: Options) -> list[str]:
    """Pages per second of each way; how many times that of pymupdf4llm ours is, by round."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        cases = ("simple", simple_pdf, options.pages), ("complex", complex_pdf, _COMPLEX_PAGES)
        for name, make, pages in cases:
            many, few = Path(folder, f"{name}-many.pdf"), Path(folder, f"{name}-few.pdf")
            many.write_bytes(make(1, pages))
            few.write_bytes(make(1, _PEER_PAGES))
            rates = _rates(many, pages, few, options.rounds)
            peer = rates["pymupdf4llm"]
            for way, found in rates.items():
                times = median(mine / theirs for mine, theirs in zip(found, peer, strict=True))
                rows.append([name, way, *best_and_median(found), f"{times:.1f}"])
    head = ["pages", "way", "pages/s, best", "median", "times pymupdf4llm"]
    return table(head, rows)


def _rates(many: Path, pages: int, few: Path, rounds: int) -> dict[str, list[float]]:
    ways: dict[str, tuple[Way, Path, int]] = {
        "Ragplane": (_ours, many, pages),
        "Ragplane, pdfium": (_ours_pdfium, many, pages),
        "pymupdf4llm": (_pymupdf4llm, few, _PEER_PAGES),
    }
    rates: dict[str, list[float]] = defaultdict(list)
    context = multiprocessing.get_context("spawn")
    pools: dict[str, Any] = {name: context.Pool(1, _bind) for name in ways}
    try:
        for name, (way, _, _) in ways.items():
            pools[name].apply(way, (few,))  # loads what it needs
        for _ in range(rounds):
            for name, (way, path, count) in ways.items():
                rates[name].append(count / pools[name].apply(way, (path,)))
    finally:
        for pool in pools.values():
            pool.terminate()
            pool.join()
    return rates


def _bind() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _ours(path: Path) -> float:
    return _parse(path, "mupdf")


def _ours_pdfium(path: Path) -> float:
    return _parse(path, "pdfium")


def _parse(path: Path, engine: PdfEngine) -> float:
    request = ParseRequest(path, path.as_uri(), "bench", "bench", UUID(int=1), 1)
    parser = _parser(engine)
    started = time.process_time()
    result = parser.parse(request)
    seconds = time.process_time() - started
    assert all(page.blocks and page.route in ("text", "layout") for page in result.pages)
    return seconds


@cache
def _parser(engine: PdfEngine) -> Any:
    from ingest.parse import Parser

    return Parser(parser_spec(pdf=engine))


def _pymupdf4llm(path: Path) -> float:
    import pymupdf
    import pymupdf4llm

    started = time.process_time()
    with pymupdf.open(path) as pdf:
        text = pymupdf4llm.to_markdown(pdf, use_ocr=False)
    assert text
    return time.process_time() - started
