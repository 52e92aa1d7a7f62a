"""Scanned pages: our OCR route beside RapidOCR itself, all CPUs busy."""

from __future__ import annotations

from ragplane.core.cpu import available_cpus
from tests.bench.ingest import ocr
from tests.bench.ingest.options import Options
from tests.bench.report import table


def measure(options: Options) -> list[str]:
    """Seconds a page by the clock, the ratio, and how busy our processes kept their CPUs."""
    found = ocr.measure(options.scans, available_cpus(), options.rounds)
    head = ["pages", "processes", "Ragplane s/page", "RapidOCR s/page", "ratio", "CPUs busy"]
    seconds = f"{found.ours_s_per_page:.2f}", f"{found.rapidocr_s_per_page:.2f}"
    counts = str(found.pages), str(found.processes)
    return table(head, [[*counts, *seconds, f"{found.ratio:.3f}", f"{found.busy_share:.0%}"]])
