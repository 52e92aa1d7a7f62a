"""Markdown tables, and what was measured on what."""

from __future__ import annotations

import platform
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ragplane import __version__
from ragplane.core.cpu import available_cpus
from tests.bench.processes import peer_python

_OURS = ("torch", "onnxruntime", "tokenizers", "numpy", "uvicorn")
_PEERS = {
    "sentence-transformers": (
        "sentence-transformers",
        "transformers",
        "torch",
        "openvino",
        "onnxruntime",
    ),
    "infinity": ("infinity-emb", "transformers", "torch"),
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def best_and_median(rates: Sequence[float]) -> list[str]:
    """Two cells, for rates of which more is better."""
    return [f"{max(rates):,.0f}", f"{statistics.median(rates):,.0f}"]


def percentiles(values: Sequence[float]) -> list[str]:
    """Two cells: p50 and p99."""
    return [f"{value:,.1f}" for value in np.percentile(values, [50, 99])]


def machine() -> list[str]:
    """The machine, and the versions of ours and of the peers."""
    ours = ", ".join(f"{name} {version(name)}" for name in _OURS)
    lines = [
        f"{_cpu_model()}, {platform.machine()}, {available_cpus()} CPUs",
        f"ragplane {__version__}: Python {platform.python_version()}, {ours}",
    ]
    return lines + [f"{peer}: {_peer_versions(peer, names)}" for peer, names in _PEERS.items()]


def _peer_versions(peer: str, names: Sequence[str]) -> str:
    code = (
        "import sys; from importlib.metadata import version; "
        "print(', '.join(f'{name} {version(name)}' for name in sys.argv[1:]))"
    )
    command = [str(peer_python(peer)), "-c", code, *names]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    found = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(found, platform.processor())
