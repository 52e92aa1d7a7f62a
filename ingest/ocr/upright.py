"""Which way a page image lies: quarter turns by reading it, small angles by its lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ingest.ocr.base import OcrEngine, OcrLine, Pixels
from ragplane.core.schema import BBox

_CONFIDENT = 0.85
_LEGIBLE = 0.75  # noise reads at about 0.6: a turn that reads no better tells nothing
_TALL_SHARE = 0.5
_WINDOW_HEIGHTS = 6.0  # to each side of the longest line: about eight lines to judge a turn by
_SKEW_MIN_DEGREES = 0.2
_SKEW_MAX_DEGREES = 20.0


@dataclass(frozen=True, slots=True)
class OcrPage:
    """Lines of a page turned upright and made straight.

    `rotation` is how far it was turned, clockwise, in degrees (0, 90, 180 or 270). `skew_degrees`
    is how far its lines then fell to the right; their boxes are turned back by that about the
    middle of the page. Width and height are those of the turned page.
    """

    lines: tuple[OcrLine, ...]
    rotation: int
    width_pixels: int
    height_pixels: int
    skew_degrees: float = 0.0


def read_upright(engine: OcrEngine, image: Pixels) -> OcrPage:
    """Recognise a page that may lie on its side, on its head, or a little askew.

    A page that reads well as it lies is recognised once. For others the turns are tried on a few
    lines, and the page is recognised again only if one of them reads better.
    """
    lines = engine.recognise(image)
    rotation = _best_turn(engine, image, lines)
    upright = turned(image, rotation)
    if rotation:
        lines = engine.recognise(upright)
    height, width = upright.shape[:2]
    skew = skew_degrees(lines)
    if skew:
        lines = [straightened(line, skew, (width / 2, height / 2)) for line in lines]
    return OcrPage(tuple(lines), rotation, width, height, skew)


def rotations_to_try(lines: Sequence[OcrLine]) -> tuple[int, ...]:
    """Turns (clockwise degrees) worth a try after seeing the page as it lies.

    Engines turn tall pieces anticlockwise before they read them. Where that reads well, so will
    the page.
    """
    if not lines or legibility(lines) >= _CONFIDENT:
        return ()
    if _tall_share(lines) <= _TALL_SHARE:
        return (180,)
    return (270, 90) if _mean_confidence(lines) >= _CONFIDENT else (90, 270)


def legibility(lines: Sequence[OcrLine]) -> float:
    """How readable the lines are, 0 to 1: mean confidence by length, less for lines on their
    side.
    """
    return _mean_confidence(lines) * (1 - 0.5 * _tall_share(lines))


def skew_degrees(lines: Sequence[OcrLine]) -> float:
    """The angle at which the lines fall to the right: the median by length of the long ones.

    It is 0 where it is too small to matter or too large to be a skew.
    """
    long = sorted(
        (line.angle_degrees, _width(line.bbox))
        for line in lines
        if _width(line.bbox) > 4 * _height(line.bbox)
    )
    half = sum(width for _, width in long) / 2
    for angle, width in long:
        half -= width
        if half <= 0:
            return angle if _SKEW_MIN_DEGREES <= abs(angle) <= _SKEW_MAX_DEGREES else 0.0
    return 0.0


def straightened(line: OcrLine, skew: float, middle: tuple[float, float]) -> OcrLine:
    """The line with its box as it is once the page is turned back by `skew` about `middle`."""
    turn = math.radians(skew)
    dx = (line.bbox.x0 + line.bbox.x1) / 2 - middle[0]
    dy = (line.bbox.y0 + line.bbox.y1) / 2 - middle[1]
    x = middle[0] + dx * math.cos(turn) + dy * math.sin(turn)
    y = middle[1] - dx * math.sin(turn) + dy * math.cos(turn)
    width, height = _inner_size(line)
    box = BBox(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    return replace(line, bbox=box, angle_degrees=line.angle_degrees - skew)


def _inner_size(line: OcrLine) -> tuple[float, float]:
    """Width and height of the leaning rectangle that `bbox` encloses."""
    lean = math.radians(abs(line.angle_degrees))
    width, height = _width(line.bbox), _height(line.bbox)
    span = math.cos(2 * lean)
    if span < 0.1:  # near 45 degrees the box says nothing of the sides
        return width, height
    inner_width = (width * math.cos(lean) - height * math.sin(lean)) / span
    inner_height = (height * math.cos(lean) - width * math.sin(lean)) / span
    return max(inner_width, 1.0), max(inner_height, 1.0)


def _best_turn(engine: OcrEngine, image: Pixels, lines: Sequence[OcrLine]) -> int:
    """The quarter turn, clockwise, after which the lines about the longest one read best."""
    rotations = rotations_to_try(lines)
    if not rotations:
        return 0
    window = _window(lines, image)
    x, y = slice(int(window.x0), math.ceil(window.x1)), slice(int(window.y0), math.ceil(window.y1))
    best = legibility([line for line in lines if _inside(line.bbox, window)]), 0
    for rotation in rotations:
        trial = legibility(engine.recognise(turned(image[y, x], rotation)))
        best = max(best, (trial, rotation), key=lambda tried: tried[0])
        if best[0] >= _CONFIDENT:
            break
    return best[1] if best[0] >= _LEGIBLE else 0


def _window(lines: Sequence[OcrLine], image: Pixels) -> BBox:
    """The longest line with some of what stands around it, within the image."""
    box = max(lines, key=lambda line: line.characters).bbox
    around = _WINDOW_HEIGHTS * min(_width(box), _height(box))
    height, width = image.shape[:2]
    return BBox(
        max(0.0, box.x0 - around),
        max(0.0, box.y0 - around),
        min(float(width), box.x1 + around),
        min(float(height), box.y1 + around),
    )


def _inside(box: BBox, window: BBox) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return window.x0 <= x <= window.x1 and window.y0 <= y <= window.y1


def _mean_confidence(lines: Sequence[OcrLine]) -> float:
    characters = sum(line.characters for line in lines)
    return sum(line.confidence * line.characters for line in lines) / max(1, characters)


def _tall_share(lines: Sequence[OcrLine]) -> float:
    """Share of the characters that stand in boxes taller than wide."""
    weighed = [line for line in lines if line.characters > 2]
    characters = sum(line.characters for line in weighed)
    tall = [line for line in weighed if _height(line.bbox) > 1.5 * _width(line.bbox)]
    return sum(line.characters for line in tall) / characters if characters else 0.0


def _width(box: BBox) -> float:
    return box.x1 - box.x0


def _height(box: BBox) -> float:
    return box.y1 - box.y0


def turned(image: Pixels, rotation: int) -> Pixels:
    """The image turned clockwise by a multiple of 90 degrees."""
    return np.ascontiguousarray(np.rot90(image, k=-rotation // 90))


def laid(image: Pixels, rotation: int, skew_degrees: float) -> Pixels:
    """The image as the boxes of its lines lie: turned clockwise, then made straight."""
    upright = turned(image, rotation)
    if not skew_degrees:
        return upright
    import cv2

    height, width = upright.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), skew_degrees, 1.0)
    paper = (255, 255, 255)
    return np.asarray(cv2.warpAffine(upright, turn, (width, height), borderValue=paper), np.uint8)
