"""The cost model that is fitted to timings, and the micro-batch that follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from ragplane.core.models import read_model
from serve.backends.base import ModelInput
from serve.backends.calibration import Calibration, Timing, calibrate, fit
from serve.encoder import Vectors

SHAPES = ((1, 8), (32, 16), (8, 64), (8, 128), (4, 256), (2, 512))


def timings(fixed_s: float, per_token_s: float, attention_tokens: float) -> list[Timing]:
    return [
        Timing(n, k, fixed_s + per_token_s * n * k * (1 + k / attention_tokens)) for n, k in SHAPES
    ]


def test_the_fit_finds_what_made_the_timings() -> None:
    """Behaviour 2: the budget counts tokens and attention."""
    found = fit(timings(0.002, 4e-5, 800.0))
    assert found.fixed_s == pytest.approx(0.002, rel=1e-3)
    assert found.tokens_per_s == pytest.approx(25_000, rel=1e-3)
    assert found.attention_tokens == pytest.approx(800, rel=1e-3)


def test_a_term_that_the_timings_deny_is_left_out() -> None:
    odd = [Timing(n, k, 4e-5 * n * k * (1 - k / 4000)) for n, k in SHAPES]
    found = fit(odd)
    assert found.attention_tokens == math.inf
    assert found.fixed_s >= 0
    assert found.tokens_per_s == pytest.approx(25_000, rel=0.2)


@pytest.mark.parametrize(
    ("fixed_s", "tokens_per_s", "limit", "expected"),
    [
        (0.002, 25_000, 16384, 1024),  # 95 % of full speed
        (0.020, 25_000, 16384, 1280),  # 50 ms
        (0.0, 25_000, 16384, 512),
        (0.002, 1_000, 16384, 512),  # a slow host
        (0.050, 1_000_000, 16384, 4096),
        (0.002, 25_000, 300, 300),  # never over the limit
    ],
)
def test_the_micro_batch_is_as_small_as_full_speed_allows(
    fixed_s: float, tokens_per_s: float, limit: int, expected: int
) -> None:
    """Behaviour 4."""
    assert Calibration(fixed_s, tokens_per_s, math.inf).micro_batch_tokens(limit) == expected


class CountingBackend:
    """Remembers its batches."""

    name, dtype, packed = "stub", "float32", True

    def __init__(self) -> None:
        self.batches: list[tuple[int, int]] = []

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        self.batches.append((len(inputs), len(inputs[0].ids)))
        return [np.zeros((len(item.ids), 4), np.float32) for item in inputs]


def test_calibration_is_bounded_and_keeps_to_the_model() -> None:
    """Behaviour 28."""
    files = read_model("bundled")
    backend, hurried = CountingBackend(), CountingBackend()
    calibrate(backend, files, limit_s=60)
    assert max(length for _, length in backend.batches) <= files.max_tokens
    calibrate(hurried, files, limit_s=0)
    assert len(set(hurried.batches)) == 2 < len(set(backend.batches))
