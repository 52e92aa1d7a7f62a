"""Loops in what a model wrote: the way in which greedy decoding goes wrong most often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_MAX_PERIOD_WORDS = 64


@dataclass(frozen=True, slots=True)
class Repetition:
    """Something that was written again and again: its words, and how often it stands there."""

    words: tuple[str, ...]
    times: int


def repeated_line(lines: Sequence[str]) -> Repetition | None:
    """The line that stands there most often; lines without a letter or digit do not count."""
    counted = Counter(tuple(line.split()) for line in lines if any(map(str.isalnum, line)))
    if not counted:
        return None
    words, times = counted.most_common(1)[0]
    return Repetition(words, times)


def longest_loop(words: Sequence[str]) -> Repetition | None:
    """The longest run of words that is one phrase (at most 64 words) over and over.

    None if nothing is said twice in a row.
    """
    best: Repetition | None = None
    best_length = 0
    for period in range(1, min(_MAX_PERIOD_WORDS, len(words) // 2) + 1):
        length, end = _longest_run([a == b for a, b in zip(words[period:], words, strict=False)])
        if length >= period and length + period > best_length:
            phrase = tuple(words[end : end + period])
            best, best_length = Repetition(phrase, length // period + 1), length + period
    return best


def _longest_run(flags: Sequence[bool]) -> tuple[int, int]:
    """Length of the longest run of True, and the index after it."""
    best = end = length = 0
    for index, flag in enumerate(flags, start=1):
        length = length + 1 if flag else 0
        if length > best:
            best, end = length, index
    return best, end
