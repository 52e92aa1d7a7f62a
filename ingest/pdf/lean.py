"""PyMuPDF without its layout model, which it would load as soon as it is imported.

That takes 1.7 s and 70 MB in every parser process, and few pages need it: `ingest.pdf.mupdf_layout`
imports it for those.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

_WITH_MODEL = ("pymupdf.layout", "pymupdf4llm")


def _import_lean() -> ModuleType:
    """Import the package while those modules look as if they were not installed."""
    held_back = [] if "pymupdf" in sys.modules else [n for n in _WITH_MODEL if n not in sys.modules]
    modules: dict[str, Any] = dict.fromkeys(held_back)  # what `import` takes as absent
    sys.modules.update(modules)
    try:
        import pymupdf
    finally:
        for name in held_back:
            del sys.modules[name]
    return pymupdf


pymupdf = _import_lean()
