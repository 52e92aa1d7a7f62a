"""The OCR engines by name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ingest.ocr.base import OcrEngine

EngineName = Literal["rapid", "paddle"]


def make_engine(name: EngineName, threads: int, home: Path) -> OcrEngine:
    """Load an engine; it may use `threads` threads and keep files under `home`.

    Raises ConfigError for `paddle` where the paddleocr package is not installed.
    """
    if name == "rapid":
        from ingest.ocr.rapid import RapidOcrEngine

        return RapidOcrEngine(threads)
    from ingest.ocr.paddle import PaddleOcrEngine, prepare_models

    return PaddleOcrEngine(threads, prepare_models(home))
