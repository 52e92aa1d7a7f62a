"""The choice of sentences under a budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compress.select import Sentence, leans_back, select_sentences, without_worst


def sentence(
    passage: int, index: int, score: float, tokens: int = 10, text: str = "A."
) -> Sentence:
    return Sentence(passage, index, text, tokens, score)


def test_the_best_are_kept_in_passage_order() -> None:
    sentences = [sentence(0, 0, 0.1), sentence(0, 1, 0.9), sentence(1, 0, 0.8)]
    kept = select_sentences(sentences, budget_tokens=30, passage_tokens=[5, 5])
    assert [(s.passage, s.index) for s in kept] == [(0, 1), (1, 0)]


def test_opening_a_passage_costs_its_citation_line() -> None:
    sentences = [sentence(0, 0, 0.9), sentence(1, 0, 0.8)]
    assert len(select_sentences(sentences, budget_tokens=29, passage_tokens=[5, 5])) == 1


def test_a_sentence_that_leans_back_brings_the_one_before() -> None:
    sentences = [
        sentence(0, 0, 0.1, text="The gate is old."),
        sentence(0, 1, 0.9, text="It opens at noon."),
    ]
    assert len(select_sentences(sentences, budget_tokens=25, passage_tokens=[5, 5])) == 2
    alone = select_sentences(sentences, budget_tokens=15, passage_tokens=[5, 5])
    assert [s.index for s in alone] == [0]


def test_what_leans_back() -> None:
    assert leans_back("It opens at noon.")
    assert leans_back("These are spares.")
    assert not leans_back("Items open at noon.")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1), st.integers(1, 40)), max_size=20),
    st.integers(0, 120),
)
def test_the_budget_is_never_exceeded(rows: list[tuple[int, float, int]], budget: int) -> None:
    counts: dict[int, int] = {}
    sentences = []
    for passage, score, tokens in rows:
        index = counts.get(passage, 0)
        counts[passage] = index + 1
        sentences.append(sentence(passage, index, score, tokens))
    kept = select_sentences(sentences, budget, passage_tokens=[7] * 4)
    passages = {s.passage for s in kept}
    assert sum(s.tokens for s in kept) + 7 * len(passages) <= budget
    assert len(set(kept)) == len(kept)


def test_what_leaned_on_the_worst_goes_with_it() -> None:
    sentences = [
        sentence(0, 0, 0.1, text="The gate is old."),
        sentence(0, 1, 0.9, text="It opens at noon."),
        sentence(1, 0, 0.5, text="The pump is green."),
    ]
    assert [s.passage for s in without_worst(sentences)] == [1]
