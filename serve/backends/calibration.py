"""What a batch costs on this host: a few shapes timed, and a cost model fitted to them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragplane.core.models import ModelFiles
from serve.backends.base import Backend, ModelInput
from serve.batching.cost import CostModel

# Inputs and tokens of each: enough to tell the fixed cost, the linear one and attention apart.
_SHAPES = ((1, 8), (16, 16), (32, 16), (8, 64), (8, 128), (4, 256), (2, 512))
_REPEATS = 3
_FULL_SPEED_SHARE = 0.95
_LONGEST_BATCH_S = 0.05
_MIN_BATCH_TOKENS, _MAX_BATCH_TOKENS, _STEP_TOKENS = 512, 4096, 128


@dataclass(frozen=True, slots=True)
class Timing:
    """One forward pass of `size` inputs of `length` tokens."""

    size: int
    length: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A pass of n inputs of length l takes `fixed_s` + (n l + n l^2 / attention_tokens) / speed."""

    fixed_s: float
    tokens_per_s: float
    attention_tokens: float

    def cost(self, *, packed: bool) -> CostModel:
        """The cost model of a backend of this speed."""
        return CostModel(packed, self.attention_tokens)

    def micro_batch_tokens(self, max_tokens: int) -> int:
        """The smallest batch that runs at nearly full speed, and within 50 ms: more
        would make others wait and gain nothing. `max_tokens` is never exceeded."""
        full = self.fixed_s * self.tokens_per_s * _FULL_SPEED_SHARE / (1 - _FULL_SPEED_SHARE)
        short = self.tokens_per_s * _LONGEST_BATCH_S
        tokens = math.ceil(min(full, short) / _STEP_TOKENS) * _STEP_TOKENS
        return min(max(_MIN_BATCH_TOKENS, tokens), _MAX_BATCH_TOKENS, max_tokens)


def fit(timings: Sequence[Timing]) -> Calibration:
    """Least squares over relative errors; a term that would come out negative is left out."""
    sizes = np.array([timing.size for timing in timings], float)
    lengths = np.array([timing.length for timing in timings], float)
    seconds = np.array([timing.seconds for timing in timings])
    terms = [np.ones_like(sizes), sizes * lengths, sizes * lengths**2]
    used = [0, 1, 2]
    while True:
        matrix = np.stack([terms[term] / seconds for term in used], axis=1)
        solved = np.linalg.lstsq(matrix, np.ones_like(seconds), rcond=None)[0]
        found = dict(zip(used, solved.tolist(), strict=True))
        negative = [term for term in used if found[term] <= 0 and term != 1]
        if not negative:
            break
        used.remove(min(negative, key=lambda term: found[term]))
    per_token_s = max(found[1], 1e-9)
    quadratic_s = found.get(2, 0.0)
    attention = per_token_s / quadratic_s if quadratic_s else math.inf
    return Calibration(found.get(0, 0.0), 1.0 / per_token_s, attention)


def calibrate(backend: Backend, files: ModelFiles, limit_s: float) -> Calibration:
    """Time the shapes that the model takes, best of three, until `limit_s` is over.

    The first two shapes always run, so the time is bounded by them on the slowest host.
    """
    started_s = time.perf_counter()
    timings: list[Timing] = []
    random = np.random.default_rng(0)
    for size, length in _SHAPES:
        if length > files.max_tokens or (
            len(timings) > 1 and time.perf_counter() - started_s > limit_s
        ):
            break
        inputs = random_inputs(random, files, [length] * size)
        seconds = min(_timed(backend, inputs) for _ in range(_REPEATS))
        timings.append(Timing(size, length, seconds))
    return fit(timings)


def random_inputs(
    random: np.random.Generator, files: ModelFiles, lengths: Sequence[int]
) -> list[ModelInput]:
    """Inputs of random token ids."""
    low = min(1000, files.vocabulary_size // 2)
    return [
        ModelInput(tuple(random.integers(low, files.vocabulary_size, length).tolist()))
        for length in lengths
    ]


def _timed(backend: Backend, inputs: Sequence[ModelInput]) -> float:
    started_s = time.perf_counter()
    backend.forward(inputs)
    return time.perf_counter() - started_s
