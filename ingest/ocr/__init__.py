"""Recognising text in page images: one seam, two engines behind it, and page orientation."""

from ingest.ocr.base import EngineFactory, LazyOcr, OcrEngine, OcrLine, Pixels
from ingest.ocr.confidence import page_confidence
from ingest.ocr.engines import EngineName, make_engine
from ingest.ocr.rapid import RapidOcrEngine
from ingest.ocr.upright import OcrPage, legibility, read_upright

__all__ = [
    "EngineFactory",
    "EngineName",
    "LazyOcr",
    "OcrEngine",
    "OcrLine",
    "OcrPage",
    "Pixels",
    "RapidOcrEngine",
    "legibility",
    "make_engine",
    "page_confidence",
    "read_upright",
]
