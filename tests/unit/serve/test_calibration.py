"""The cost model that is fitted to timings, and the micro-batch that follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ragplane.core.models import read_model
from serve.backends.base import Backend, ModelInput
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
        (0.004, 25_000, 16384, 1920),  # 95 % of full speed
        (0.020, 25_000, 16384, 2560),  # a tenth of a second
        (0.0, 25_000, 16384, 1536),  # whatever the noise
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


def test_what_is_not_measured_has_a_default() -> None:
    nothing = fit([])
    assert nothing.tokens_per_s == 20_000
    assert (nothing.micro_batch_tokens(16384), nothing.micro_batch_tokens(300)) == (1536, 300)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_timings_give_a_line_only(count: int) -> None:
    found = fit(timings(0.002, 4e-5, 100.0)[:count])
    assert found.attention_tokens == math.inf
    assert 1_000 < found.tokens_per_s < 40_000
    assert found.micro_batch_tokens(16384) >= 512


def test_equal_lengths_say_nothing_about_attention() -> None:
    found = fit([Timing(n, 4, 0.001 + 4e-5 * n * 4) for n in (1, 16, 32, 8, 4, 2)])
    assert found.attention_tokens == math.inf
    assert found.fixed_s == pytest.approx(0.001, rel=1e-3)
    assert found.tokens_per_s == pytest.approx(25_000, rel=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_no_noise_makes_a_wild_claim(seed: int) -> None:
    random = np.random.default_rng(seed)
    noisy = [
        Timing(t.size, t.length, t.seconds * random.uniform(1, 8))
        for t in timings(0.002, 4e-5, 800.0)
    ]
    found = fit(noisy)
    best = max(t.size * t.length / t.seconds for t in noisy)
    assert 0 < found.tokens_per_s <= 1.5 * best * (1 + 1e-9)
    assert found.attention_tokens >= 128
    assert 0 <= found.fixed_s <= min(t.seconds for t in noisy)


class CountingBackend(Backend):
    """Remembers its batches; each takes `seconds` of the test's own clock."""

    name, dtype, packed, streams = "stub", "float32", True, 1

    def __init__(self, clock: Clock, seconds: float = 0.001) -> None:
        self.batches: list[tuple[int, int]] = []
        self._clock = clock
        self._seconds = seconds

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        self.batches.append((len(inputs), len(inputs[0].ids)))
        self._clock.now_s += self._seconds
        return [np.zeros((len(item.ids), 4), np.float32) for item in inputs]


class Clock:
    """In place of the system's."""

    now_s = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("serve.backends.calibration.time.perf_counter", lambda: clock.now_s)
    return clock


def test_calibration_keeps_to_the_model(clock: Clock) -> None:
    files = read_model("bundled")
    for max_tokens, longest in ((256, 256), (4, 4), (100, 100)):
        backend = CountingBackend(clock)
        found = calibrate(backend, replace(files, max_tokens=max_tokens), limit_s=60)
        assert max(length for _, length in backend.batches) == longest
        assert 0 < found.tokens_per_s < 1e9


@pytest.mark.parametrize(
    ("pass_s", "limit_s", "passes"),
    [(0.001, 0.0, 0), (5.0, 1.0, 1), (5.0, 6.0, 2), (1.0, 3.5, 4), (1.0, 99, 8), (0.001, 99, 15)],
)
def test_calibration_is_bounded(clock: Clock, pass_s: float, limit_s: float, passes: int) -> None:
    """Behaviour 28."""
    backend = CountingBackend(clock, pass_s)
    calibrate(backend, read_model("bundled"), limit_s)
    assert len(backend.batches) == passes
