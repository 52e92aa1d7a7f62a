import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.stores import bm25


def test_idf_by_hand() -> None:
    assert bm25.idf(10, 2) == pytest.approx(math.log(1 + 8.5 / 2.5))


def test_score_by_hand() -> None:
    expected = 2.0 * 3 * 2.2 / (3 + 1.2 * (0.25 + 0.75 * 8 / 10))
    assert bm25.score({"a": 2.0, "b": 1.0}, {"a": 3}, 8, 10.0) == pytest.approx(expected)


def test_nothing_scores_zero_in_an_empty_corpus() -> None:
    assert bm25.score({"a": 1.0}, {}, 0, 0.0) == 0.0


@given(st.integers(1, 10**6), st.data())
def test_idf_is_never_negative_and_falls(chunks: int, data: st.DataObject) -> None:
    containing = data.draw(st.integers(1, chunks))
    assert bm25.idf(chunks, containing) > 0
    assert bm25.idf(chunks, containing) < bm25.idf(chunks, containing - 1)
