from uuid import UUID, uuid5

import pytest

from retrieval.stores import bm25
from retrieval.stores.plan import (
    COUNTED_POSTINGS,
    DRIVING_POSTINGS,
    RESCORED_CHUNKS,
    TermCount,
    estimate,
    plan,
)

_CHUNKS = 1_000_000


def test_a_rare_term_is_counted() -> None:
    assert estimate("a", 7, UUID(int=1), 10) == TermCount("a", 7)


@pytest.mark.parametrize("containing", [2_000, 20_000])
def test_a_common_term_is_estimated_from_its_ids(containing: int) -> None:
    ids = sorted(uuid5(UUID(int=0), str(number)) for number in range(containing))
    found = estimate("a", COUNTED_POSTINGS, ids[COUNTED_POSTINGS - 1], _CHUNKS)
    assert found.containing == pytest.approx(containing, rel=0.1)


def test_an_estimate_stays_between_what_was_seen_and_the_corpus() -> None:
    last = UUID(int=2**128 - 1)
    assert estimate("a", COUNTED_POSTINGS, last, _CHUNKS).containing == COUNTED_POSTINGS
    assert estimate("a", COUNTED_POSTINGS, UUID(int=0), _CHUNKS).containing == _CHUNKS


def test_under_the_cap_every_term_drives() -> None:
    made = plan([TermCount("a", 10), TermCount("b", 20)], 100)
    assert {term: weight for term, (weight, _) in made.driving.items()} == {
        "a": bm25.idf(100, 10),
        "b": bm25.idf(100, 20),
    }
    assert made.rest == {}


def test_a_term_over_the_cap_fills_up_and_is_scored_as_one_of_the_rest() -> None:
    counts = [TermCount("common", 500_000), TermCount("rare", 5), TermCount("most", 900_000)]
    made = plan(counts, _CHUNKS)
    assert made.driving["common"] == (0.0, RESCORED_CHUNKS)
    assert made.rest == {
        "common": bm25.idf(_CHUNKS, 500_000),
        "most": bm25.idf(_CHUNKS, 900_000),
    }


def test_one_term_drives_however_common_it_is() -> None:
    made = plan([TermCount("common", 500_000)], _CHUNKS)
    assert made.driving == {"common": (bm25.idf(_CHUNKS, 500_000), DRIVING_POSTINGS)}
    assert made.rest == {}


def test_no_terms_no_plan() -> None:
    made = plan([], 10)
    assert (made.driving, made.rest) == ({}, {})
