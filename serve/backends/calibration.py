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
_SECOND_ROUND_S = 0.25
# Fewer timings than this, or fewer lengths, say nothing about a quadratic term.
_QUADRATIC_TIMINGS, _QUADRATIC_LENGTHS = 4, 3
# No fit over noisy timings may claim more: speed over the best measured one, cost of attention.
_SPEED_MARGIN = 1.5
_MIN_ATTENTION_TOKENS = 128.0
_FULL_SPEED_SHARE = 0.95
_FULL_SPEED_TOKENS = 1536
_LONGEST_BATCH_S = 0.1
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
        return CostModel(packed, self.attention_tokens, fixed_s=self.fixed_s)

    def micro_batch_tokens(self, max_tokens: int) -> int:
        """The smallest batch that runs at nearly full speed, and within a tenth of a second.

        More would make others wait and gain nothing. `max_tokens` is never exceeded.
        """
        full = self.fixed_s * self.tokens_per_s * _FULL_SPEED_SHARE / (1 - _FULL_SPEED_SHARE)
        short = self.tokens_per_s * _LONGEST_BATCH_S
        # Noise may hide the fixed cost, but no batch under so many runs at full speed.
        tokens = math.ceil(min(max(full, _FULL_SPEED_TOKENS), short) / _STEP_TOKENS) * _STEP_TOKENS
        return min(max(_MIN_BATCH_TOKENS, tokens), _MAX_BATCH_TOKENS, max_tokens)


# What is taken for granted until batches show it: about MiniLM on two CPUs.
UNMEASURED = Calibration(fixed_s=0.0026, tokens_per_s=20_000.0, attention_tokens=math.inf)


def fit(timings: Sequence[Timing]) -> Calibration:
    """Least squares over relative errors, within what the timings themselves allow.

    A term that would come out negative, or that so few timings cannot tell, is left out. No
    timings give `UNMEASURED`.
    """
    if not timings:
        return UNMEASURED
    sizes = np.array([timing.size for timing in timings], float)
    lengths = np.array([timing.length for timing in timings], float)
    seconds = np.array([timing.seconds for timing in timings])
    tokens = sizes * lengths
    found = _solve([np.ones_like(sizes), tokens, tokens * lengths], seconds, _terms(timings))
    fastest_s = float((seconds / tokens).min())
    per_token_s = max(found[1], fastest_s / _SPEED_MARGIN)
    quadratic_s = found.get(2, 0.0)
    return Calibration(
        fixed_s=min(found.get(0, 0.0), float(seconds.min())),
        tokens_per_s=1.0 / per_token_s,
        attention_tokens=max(per_token_s / quadratic_s, _MIN_ATTENTION_TOKENS)
        if quadratic_s
        else math.inf,
    )


def calibrate(backend: Backend, files: ModelFiles, limit_s: float) -> Calibration:
    """Time the shapes, cut to what the model takes, until `limit_s` is over; 0: nothing runs.

    One pass of the first shape always ends. A second round is for hosts that do it in no time.
    """
    if limit_s <= 0:
        return UNMEASURED
    started_s = time.perf_counter()
    best_s: dict[tuple[int, int], float] = {}
    random = np.random.default_rng(0)
    shapes = list(dict.fromkeys((size, min(length, files.max_tokens)) for size, length in _SHAPES))
    # The first pass of all is slower than others, so its shape comes twice.
    rounds = [(shape, limit_s) for shape in (shapes[0], *shapes)]
    rounds += [(shape, min(limit_s, _SECOND_ROUND_S)) for shape in shapes]
    for (size, length), until_s in rounds:
        if best_s and time.perf_counter() - started_s >= until_s:
            break
        inputs = random_inputs(random, files, [length] * size)
        pooled = [item._replace(pooled=files.task == "states") for item in inputs]
        seconds = timed(backend, pooled)
        best_s[size, length] = min(seconds, best_s.get((size, length), math.inf))
    return fit([Timing(size, length, seconds) for (size, length), seconds in best_s.items()])


def timed(backend: Backend, inputs: Sequence[ModelInput]) -> float:
    """Seconds of one forward pass."""
    started_s = time.perf_counter()
    backend.forward(inputs)
    return time.perf_counter() - started_s


def random_inputs(
    random: np.random.Generator, files: ModelFiles, lengths: Sequence[int]
) -> list[ModelInput]:
    """Inputs of random token ids."""
    low = min(1000, files.vocabulary_size // 2)
    return [
        ModelInput(tuple(random.integers(low, files.vocabulary_size, length).tolist()))
        for length in lengths
    ]


def _terms(timings: Sequence[Timing]) -> list[int]:
    """Which terms to look for: 0 the fixed one, 1 the linear one, 2 the quadratic one."""
    sums = {timing.size * timing.length for timing in timings}
    lengths = {timing.length for timing in timings}
    terms = [1] if len(sums) == 1 else [0, 1]
    if len(timings) >= _QUADRATIC_TIMINGS and len(lengths) >= _QUADRATIC_LENGTHS:
        terms.append(2)
    return terms


def _solve(
    terms: Sequence[np.ndarray], seconds: np.ndarray, wanted: Sequence[int]
) -> dict[int, float]:
    """The factor of each term that is wanted and not negative; the linear one is always there."""
    used = list(wanted)
    while True:
        matrix = np.stack([terms[term] / seconds for term in used], axis=1)
        solved = np.linalg.lstsq(matrix, np.ones_like(seconds), rcond=None)[0]
        found: dict[int, float] = dict(zip(used, solved.tolist(), strict=True))
        negative = [term for term in used if found[term] <= 0 and term != 1]
        if not negative:
            return found
        used.remove(min(negative, key=lambda term: found[term]))
