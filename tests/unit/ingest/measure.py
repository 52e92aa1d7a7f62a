"""How far a reading is from the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np


def edit_distance(a: str, b: str) -> int:
    """Fewest insertions, deletions and substitutions from `a` to `b` (Levenshtein 1966)."""
    there = np.array([ord(char) for char in b], dtype=np.int64)
    steps = np.arange(len(b) + 1)
    row = steps
    for position, char in enumerate(a, start=1):
        ways = np.empty_like(row)
        ways[0] = position
        ways[1:] = np.minimum(row[1:] + 1, row[:-1] + (there != ord(char)))
        row = np.minimum.accumulate(ways - steps) + steps  # insertions, from left to right
    return int(row[-1])


def character_error_rate(truth: str, read: str) -> float:
    """Edits for each character of the truth; a run of white space counts as one space."""
    expected, got = " ".join(truth.split()), " ".join(read.split())
    return edit_distance(expected, got) / max(1, len(expected))


def adjacent_pairs_kept(truth: str, read: str) -> float:
    """Share of the truth's neighbouring words that are neighbours in the reading, in order."""
    expected, got = _pairs(truth.split()), _pairs(read.split())
    return (expected & got).total() / max(1, expected.total())


def cells_f1(truth: Iterable[Sequence[str]], read: Iterable[Sequence[str]]) -> float:
    """F1 of cells: one is right if its text stands in the same row and column of its table."""
    expected, got = _placed(truth), _placed(read)
    return 2 * (expected & got).total() / max(1, expected.total() + got.total())


def _pairs(words: Sequence[str]) -> Counter[tuple[str, str]]:
    return Counter(pairwise(words))


def _placed(rows: Iterable[Sequence[str]]) -> Counter[tuple[int, int, str]]:
    return Counter(
        (row, column, " ".join(cell.split()))
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells)
    )
