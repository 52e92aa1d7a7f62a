"""Keeping sentences under a token budget: the decisions, without a model.

Greedy by score, best first; a kept sentence brings its neighbour along where it cannot stand alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LEANS_BACK = re.compile(
    r"^(?:it|its|they|them|their|he|she|his|her|this|that|these|those|such|both|however|therefore|"
    r"otherwise|also|then|in (?:this|that) case)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A candidate: sentence `index` of passage `passage`, its tokens, and how well it fits."""

    passage: int
    index: int
    text: str
    tokens: int
    score: float


def leans_back(text: str) -> bool:
    """Whether a sentence opens with a word that points to the one before it."""
    return _LEANS_BACK.match(text) is not None


def select_sentences(
    sentences: Sequence[Sentence], budget_tokens: int, passage_tokens: Sequence[int]
) -> list[Sentence]:
    """The sentences to keep, in passage order.

    Opening passage p costs `passage_tokens[p]` (its citation line). A sentence that leans back is
    kept together with the one before it, or not at all. Equal scores: the earlier passage, then
    the earlier sentence.
    """
    by_place = {(s.passage, s.index): s for s in sentences}
    kept: dict[tuple[int, int], Sentence] = {}
    open_passages: set[int] = set()
    spent = 0
    for sentence in sorted(sentences, key=lambda s: (-s.score, s.passage, s.index)):
        group = [s for s in _with_support(sentence, by_place) if (s.passage, s.index) not in kept]
        cost = sum(s.tokens for s in group)
        cost += 0 if sentence.passage in open_passages else passage_tokens[sentence.passage]
        if group and spent + cost <= budget_tokens:
            kept.update({(s.passage, s.index): s for s in group})
            open_passages.add(sentence.passage)
            spent += cost
    return [kept[place] for place in sorted(kept)]


def _with_support(sentence: Sentence, by_place: dict[tuple[int, int], Sentence]) -> list[Sentence]:
    before = by_place.get((sentence.passage, sentence.index - 1))
    if before is not None and leans_back(sentence.text):
        return [before, sentence]
    return [sentence]


def without_worst(kept: Sequence[Sentence]) -> list[Sentence]:
    """`kept` without its lowest score, and without a sentence that leaned back on that one."""
    worst = min(kept, key=lambda sentence: (sentence.score, -sentence.passage, -sentence.index))
    left = [sentence for sentence in kept if sentence is not worst]
    leaning = (worst.passage, worst.index + 1)
    return [s for s in left if (s.passage, s.index) != leaning or not leans_back(s.text)]
