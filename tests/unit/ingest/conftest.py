"""An OCR engine for tests, what a reader is given, and the real bundled tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ingest.ocr import OcrEngine, OcrLine, Pixels
from ingest.parsed import ParsedDocument
from ingest.readers.base import ReadContext
from ingest.sniff import reader_for
from ingest.triage import Thresholds
from ragplane.core.models import BUNDLED, read_model
from ragplane.core.schema import BBox
from ragplane.core.tokens import TextTokenizer


class FakeOcr:
    """Finds the same lines in the middle of every image, and remembers the images."""

    def __init__(self, texts: Sequence[str] = ("recognised text",)) -> None:
        self.texts = texts
        self.images: list[Pixels] = []

    def recognise(self, image: Pixels) -> list[OcrLine]:
        self.images.append(image)
        top = 0.4 * image.shape[0]
        return [
            OcrLine(text, BBox(100, top + 40 * row, 500, top + 40 * row + 30), 0.95)
            for row, text in enumerate(self.texts)
        ]


@pytest.fixture
def ocr() -> FakeOcr:
    return FakeOcr()


Read = Callable[..., ParsedDocument]


@pytest.fixture
def read(ocr: FakeOcr) -> Read:
    """Reads bytes as an ingestion would: by their content."""

    def read_bytes(
        content: bytes, name: str = "some-file", engine: OcrEngine = ocr
    ) -> ParsedDocument:
        context = ReadContext(name, engine, Thresholds())
        return reader_for(content, name)(content, context)

    return read_bytes


@pytest.fixture(scope="session")
def tokenizer_file() -> Path:
    return read_model(BUNDLED).folder / "tokenizer.json"


@pytest.fixture(scope="session")
def tokenizer(tokenizer_file: Path) -> TextTokenizer:
    return TextTokenizer(tokenizer_file)
