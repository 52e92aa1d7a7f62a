"""Documents for the benchmarks, made by seed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from textwrap import wrap
from typing import Any

import pymupdf

from tests.unit.ingest.pages import Style, document, paragraph
from tests.unit.ingest.scans import render, scanned_pdf
from tests.unit.ingest.triage_pages import boxes, drawn, grid

_LINE_CHARACTERS = 92
_SIZE_POINTS = 10.0
_LEADING_POINTS = 14.0
_BOTTOM_POINTS = 770.0


def simple_pdf(seed: int, pages: int) -> bytes:
    """A heading and paragraphs in one column, a running head and foot; other words each time."""
    random = Random(seed)
    with pymupdf.open() as pdf:
        for number in range(1, pages + 1):
            page = pdf.new_page()
            page.insert_text((64, 34), f"Harbour office report {seed}", fontsize=8)
            page.insert_text((64, 815), f"Page {number} of {pages}", fontsize=8)
            heading = f"{number}. {paragraph(random, 'en', 1)[:40]}"
            page.insert_text((64, 90), heading, fontname="hebo", fontsize=16)
            _body(page, random)
        content: bytes = pdf.tobytes(garbage=1, deflate=True)
    return content


def _body(page: Any, random: Random) -> None:
    y = 120.0
    while y < _BOTTOM_POINTS:
        lines = wrap(paragraph(random, "en", random.randint(3, 6)), _LINE_CHARACTERS)
        kept = lines[: int((_BOTTOM_POINTS - y) / _LEADING_POINTS) + 1]
        page.insert_text((64, y), kept, fontsize=_SIZE_POINTS, lineheight=1.4)
        y += _LEADING_POINTS * (len(lines) + 0.7)


def complex_pdf(seed: int, pages: int) -> bytes:
    """In turn: three columns, a ruled table, one without rules, a page-wide one, a form."""
    random = Random(seed)
    makers = (
        lambda: document(random.randrange(9999), style=Style(columns=3, size_points=8))[0],
        lambda: document(random.randrange(9999), tables="ruled")[0],
        lambda: document(random.randrange(9999), tables="unruled")[0],
        lambda: drawn(grid)(random),
        lambda: drawn(boxes)(random),
    )
    with pymupdf.open() as whole:
        for number in range(pages):
            with pymupdf.open(stream=makers[number % len(makers)](), filetype="pdf") as page:
                whole.insert_pdf(page)
        content: bytes = whole.tobytes()
    return content


def scan_pdf(seed: int, pages: int, dpi: float = 150.0) -> bytes:
    """Images of pages, without a text layer."""
    return scanned_pdf(render(simple_pdf(seed, pages), dpi), dpi)


def write_texts(folder: Path, count: int) -> None:
    """Small text files, a hundred in a folder."""
    random = Random(0)
    for number in range(count):
        path = folder / f"{number // 100:03}" / f"note-{number:05}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"Note {number}. {paragraph(random, 'en', 2)}", encoding="utf-8")
