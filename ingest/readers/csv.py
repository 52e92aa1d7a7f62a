"""CSV and TSV (RFC 4180 and its kin): the delimiter is found, the rows are one table."""

from __future__ import annotations

import csv
import io
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from ingest.encoding import decode_text
from ingest.parsed import ParsedDocument
from ingest.readers.base import ReadContext
from ingest.readers.flowing import flowing_document
from ingest.readers.rows import table_blocks

_DELIMITERS = ",;\t|"
_SAMPLE_CHARACTERS = 1 << 16
_SAMPLE_ROWS = 200
_MIN_ROWS_ALIKE = 0.8


def read_csv(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read delimited text as one table on one page. Raises StageError `parse` for no text."""
    started = time.perf_counter()
    text = decode_text(content).replace("\x00", "")
    delimiter = find_delimiter(text) or ","
    mime = "text/tab-separated-values" if delimiter == "\t" else "text/csv"
    return flowing_document(mime, table_blocks(_rows(text, delimiter)), context, started)


def find_delimiter(text: str) -> str | None:
    """The delimiter that cuts nearly all lines into the same number of fields, at least two.

    None where there is none. Of several, the one that makes most fields.
    """
    sample = text[:_SAMPLE_CHARACTERS]
    best: tuple[int, str | None] = (1, None)
    for delimiter in _DELIMITERS:
        if delimiter in sample:
            best = max(best, (_fields(sample, delimiter), delimiter), key=lambda found: found[0])
    return best[1]


def is_table(text: str) -> bool:
    """Whether text is plainly a table: five lines or more, all of the same three fields or more."""
    sample = text[:_SAMPLE_CHARACTERS]
    delimiter = find_delimiter(sample)
    if delimiter is None:
        return False
    sizes = {len(row) for row in _sample_rows(sample, delimiter)}
    return len(sizes) == 1 and min(sizes) >= 3 and sample.count("\n") >= 5


def _fields(sample: str, delimiter: str) -> int:
    """How many fields most rows have; 1 where the rows do not agree."""
    sizes = Counter(len(row) for row in _sample_rows(sample, delimiter))
    if not sizes:
        return 1
    size, count = sizes.most_common(1)[0]
    return size if count >= _MIN_ROWS_ALIKE * sizes.total() else 1


def _sample_rows(sample: str, delimiter: str) -> list[Sequence[str]]:
    """Rows that are not blank. The last one of many may be cut off, so it is left out."""
    rows = [row for row in _rows(sample, delimiter) if row][: _SAMPLE_ROWS + 1]
    return rows[:-1] if len(sample) == _SAMPLE_CHARACTERS and len(rows) > 1 else rows


def _rows(text: str, delimiter: str) -> Iterable[Sequence[str]]:
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:  # a field over the library's limit, mostly after a quote that is not closed
        return [line.split(delimiter) for line in text.splitlines()]
