"""`python -m tests.bench.ingest [TABLE...]`: ingestion as Markdown tables.

Settings come from RAGPLANE_* in the environment, as always.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version

from ragplane import __version__
from ragplane.core.cpu import available_cpus
from tests.bench.ingest import end_to_end, memory, rerun, scans, text
from tests.bench.ingest.options import Options
from tests.bench.report import _cpu_model as cpu_model

TABLES: dict[str, tuple[str, Callable[[Options], list[str]]]] = {
    "text": ("Text pages to chunks, one core", text.measure),
    "scans": ("Scans: OCR", scans.measure),
    "end_to_end": ("Files to store, with embeddings", end_to_end.measure),
    "rerun": ("Unchanged documents", rerun.measure),
    "memory": ("Memory of a parser process", memory.measure),
}
_LIBRARIES = ("pymupdf", "pymupdf4llm", "pypdfium2", "rapidocr", "onnxruntime", "torch", "psycopg")


def main() -> None:
    """Print the tables that were asked for, each as soon as it is there."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ingest")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=100, help="of text, a round")
    parser.add_argument("--scans", type=int, default=8, help="pages")
    parser.add_argument("--chunks", type=int, default=2000, help="to embed, about")
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--memory-pages", type=int, default=2000)
    given = vars(parser.parse_args())
    tables = given.pop("tables") or list(TABLES)
    if unknown := set(tables) - set(TABLES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    options = Options(**given)
    print("\n".join(f"- {line}" for line in _machine()), flush=True)
    for name in tables:
        title, measure = TABLES[name]
        print(f"\n### {title}\n", flush=True)
        print("\n".join(measure(options)), flush=True)


def _machine() -> list[str]:
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    return [
        f"{cpu_model()}, {platform.machine()}, {available_cpus()} CPUs",
        f"ragplane {__version__}: Python {platform.python_version()}, {libraries}",
        f"command: `{' '.join(['python -m tests.bench.ingest', *sys.argv[1:]])}`",
    ]


if __name__ == "__main__":
    main()
