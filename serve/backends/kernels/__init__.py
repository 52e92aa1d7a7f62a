"""Compiled parts of a forward pass on the CPU, written in Python and compiled by numba."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path


def sources_digest() -> str:
    """16 hex digits over the kernels and what compiles them. Raises PackageNotFoundError."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    facts = [version("numba"), version("llvmlite")]
    facts += [file.read_text(encoding="utf-8") for file in files]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]


def sealed(code: bytes) -> bytes:
    """Machine code behind its SHA-256: what is not whole must not run."""
    return hashlib.sha256(code).digest() + code


def unsealed(kept: bytes) -> bytes | None:
    """The machine code, or None if it is not whole."""
    size = hashlib.sha256().digest_size
    return kept[size:] if sealed(kept[size:]) == kept else None
