"""The one seam for "something that recognises text", RapidOCR behind it, and page orientation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ragplane.core.schema import BBox

Pixels = NDArray[np.uint8]
"""An image, uint8 [height, width, 3], RGB."""

_CONFIDENT = 0.85
_TALL_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class OcrLine:
    """A recognised line: its box in pixels of the image given, and a confidence from 0 to 1."""

    text: str
    bbox: BBox
    confidence: float


class OcrEngine(Protocol):
    """Recognises the lines of an upright page image."""

    def recognise(self, image: Pixels) -> list[OcrLine]:
        """The lines found, in no particular order."""
        ...


class RapidOcrEngine:
    """PP-OCRv6 small on ONNX Runtime, from the rapidocr wheel. One per process."""

    def __init__(self, threads: int) -> None:
        from rapidocr import RapidOCR

        self._ocr: Any = RapidOCR(
            params={
                "Global.log_level": "error",
                "Global.use_cls": False,
                "EngineConfig.onnxruntime.intra_op_num_threads": threads,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )

    def recognise(self, image: Pixels) -> list[OcrLine]:
        """See OcrEngine."""
        found = self._ocr(np.ascontiguousarray(image[:, :, ::-1]))  # OpenCV's order is BGR
        if found.boxes is None:
            return []
        return [
            OcrLine(text.strip(), _upright_box(corners), float(score))
            for text, corners, score in zip(found.txts, found.boxes, found.scores, strict=True)
            if text.strip()
        ]


@dataclass(frozen=True, slots=True)
class OcrPage:
    """Lines of a page turned upright; `rotation` is how far, clockwise, in degrees."""

    lines: tuple[OcrLine, ...]
    rotation: int
    width_pixels: int
    height_pixels: int


def read_upright(engine: OcrEngine, image: Pixels) -> OcrPage:
    """Recognise a page that may lie on its side or its head."""
    best = _recognise_turned(engine, image, 0)
    for rotation in rotations_to_try(best.lines):
        candidate = _recognise_turned(engine, image, rotation)
        if legibility(candidate.lines) > legibility(best.lines):
            best = candidate
        if legibility(best.lines) >= _CONFIDENT:
            break
    return best


def rotations_to_try(lines: Sequence[OcrLine]) -> tuple[int, ...]:
    """Turns (clockwise degrees) worth a try after seeing the page as it lies."""
    if not lines or legibility(lines) >= _CONFIDENT:
        return ()
    return (90, 270) if _tall_share(lines) > _TALL_SHARE else (180,)


def legibility(lines: Sequence[OcrLine]) -> float:
    """How readable the lines are, 0 to 1: mean confidence by length, less for lines on their
    side.
    """
    characters = sum(len(line.text) for line in lines)
    if not characters:
        return 0.0
    confidence = sum(line.confidence * len(line.text) for line in lines) / characters
    return confidence * (1 - 0.5 * _tall_share(lines))


def _tall_share(lines: Sequence[OcrLine]) -> float:
    """Share of the characters that stand in boxes taller than wide."""
    weighed = [line for line in lines if len(line.text) > 2]
    characters = sum(len(line.text) for line in weighed)
    tall = [line for line in weighed if _height(line.bbox) > 1.5 * (line.bbox.x1 - line.bbox.x0)]
    return sum(len(line.text) for line in tall) / characters if characters else 0.0


def _height(box: BBox) -> float:
    return box.y1 - box.y0


def _recognise_turned(engine: OcrEngine, image: Pixels, rotation: int) -> OcrPage:
    turned = np.rot90(image, k=-rotation // 90)
    lines = engine.recognise(turned)
    return OcrPage(tuple(lines), rotation, turned.shape[1], turned.shape[0])


def _upright_box(corners: Sequence[Sequence[float]]) -> BBox:
    xs = [float(x) for x, _ in corners]
    ys = [float(y) for _, y in corners]
    return BBox(min(xs), min(ys), max(xs), max(ys))


EngineFactory = Callable[[], OcrEngine]


class LazyOcr:
    """Makes the engine on first use: most documents need none, and it takes seconds to load."""

    def __init__(self, make: EngineFactory) -> None:
        self._make = make
        self._engine: OcrEngine | None = None

    def recognise(self, image: Pixels) -> list[OcrLine]:
        """See OcrEngine."""
        if self._engine is None:
            self._engine = self._make()
        return self._engine.recognise(image)
