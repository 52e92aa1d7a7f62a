import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.stores.terms import MAX_TERM_CHARACTERS, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The stations' logs", ["the", "station", "log"]),
        ("Station’s", ["station"]),
        ("OBS-12/3b", ["obs-12/3b", "ob", "12", "3b"]),
        ("OBS\u201112", ["obs-12", "ob", "12"]),
        ("3.5 km", ["3.5", "km"]),
        ("1,250.50", ["1,250.50", "1250.50"]),
        ("12.04.2031", ["12.04.2031", "12", "04", "2031"]),
        ("1,2,3", ["1,2,3", "1", "2", "3"]),
        ("Ends. Starts", ["end", "start"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        ("___", []),
        ("R&D", ["r&d", "r", "d"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("水", ["水"]),
        ("GPU加速", ["gpu", "加速"]),
        ("ﬁle Ｗｉｄｅ Straße", ["file", "wide", "strass"]),
        ("obser\u00advatory", ["observatori"]),
        ("नमस्ते", ["नमस्ते"]),
        ("\u202bשלום\u202c 🚀", ["שלום"]),
        ("", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_repeats_are_kept() -> None:
    assert terms("log logs logging") == ["log"] * 3


def test_composed_and_decomposed_accents_are_the_same_term() -> None:
    assert terms("caf\u00e9") == terms("cafe\u0301")


@given(st.text(max_size=200))
def test_terms_hold_for_any_text(text: str) -> None:
    found = terms(text)
    assert all(0 < len(term) <= MAX_TERM_CHARACTERS for term in found)
    assert terms(text) == found


@given(st.lists(st.sampled_from(["OBS-12/3b", "3.5", "1,250.50", "run", "東京"]), max_size=8))
def test_terms_of_words_do_not_depend_on_their_neighbours(words: list[str]) -> None:
    assert terms(" ".join(words)) == [term for word in words for term in terms(word)]


def test_a_long_run_is_cut() -> None:
    assert terms("x1" * 5000) == ["x1" * (MAX_TERM_CHARACTERS // 2)]


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_cut_as_it_is_beside_other_text(text: str) -> None:
    assert terms(f"{text} ß") == [*terms(text), "ss"]
