"""How many dots per inch a page is recognised at: pure functions of its size and what was read."""

from __future__ import annotations

BASE_DPI = 150.0
_FINE_DPI = 300.0
_DOUBTFUL = 0.97
_SMALL_PRINT_PIXELS = 23.0  # a line of 6-point text at 150 dpi is found about that high


def base_dpi(width_points: float, height_points: float, max_pixels: int) -> float:
    """The usual resolution, or less where the page would have more than `max_pixels`."""
    return min(BASE_DPI, _affordable_dpi(width_points, height_points, max_pixels))


def finer_dpi(
    dpi: float,
    confidence: float,
    line_height_pixels: float,
    size_points: tuple[float, float],
    max_pixels: int,
) -> float | None:
    """A higher resolution for a page that was read at `dpi` in doubt and has small print.

    `line_height_pixels` is that of the usual line. None where the page reads well, its print is
    large enough, or the budget of pixels leaves no room for a quarter more.
    """
    if confidence >= _DOUBTFUL or line_height_pixels >= _SMALL_PRINT_PIXELS:
        return None
    finer = min(_FINE_DPI, _affordable_dpi(*size_points, max_pixels))
    return finer if finer >= 1.25 * dpi else None


def _affordable_dpi(width_points: float, height_points: float, max_pixels: int) -> float:
    square_inches = width_points * height_points / 72**2
    return (max_pixels / square_inches) ** 0.5 if square_inches > 0 else BASE_DPI
