"""Counting and cutting with a real tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragplane.core.errors import ModelError, TokenizerError
from ragplane.core.models import BUNDLED, read_encoder
from ragplane.core.tokens import TextTokenizer, TruncationDirection, is_unicode

TOKENIZER_FILE = read_encoder(BUNDLED).folder / "tokenizer.json"
TOKENIZER = TextTokenizer(TOKENIZER_FILE)
CLS, SEP = 101, 102


def test_count_includes_special_tokens() -> None:
    assert TOKENIZER.special_tokens == 2
    assert TOKENIZER.count("") == 2
    assert TOKENIZER.count("green house") == 4
    assert TOKENIZER.count_batch(["green house", "", "a b c"]) == [4, 2, 5]
    assert TOKENIZER.count_batch([]) == []


def test_offsets_are_spans_of_the_text_without_special_tokens() -> None:
    text = "green  houses"
    assert [text[start:end] for start, end in TOKENIZER.offsets(text)] == ["green", "houses"]


def test_detail_shows_each_token() -> None:
    (first, _, last), without = TOKENIZER.detail("green"), TOKENIZER.detail("green", special=False)
    assert (first[1], first[2], last[1], last[2]) == ("[CLS]", True, "[SEP]", True)
    assert [entry[1:] for entry in without] == [("green", False, 0, 5)]


@pytest.mark.parametrize(("direction", "kept"), [("right", "a b"), ("left", "d e")])
def test_truncation_cuts_the_named_side_and_keeps_special_tokens(
    direction: TruncationDirection, kept: str
) -> None:
    [cut] = TOKENIZER.encode(["a b c d e"], max_tokens=4, direction=direction)
    [want] = TOKENIZER.encode([kept])
    assert cut.ids == want.ids
    assert (cut.ids[0], cut.ids[-1]) == (CLS, SEP)
    assert cut.special == (True, False, False, True)
    assert (cut.cut_tokens, want.cut_tokens) == (3, 0)


def test_limit_below_the_special_tokens_leaves_only_these() -> None:
    [cut] = TOKENIZER.encode(["a b c"], max_tokens=1)
    assert cut.ids == (CLS, SEP)
    assert cut.cut_tokens == 3


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), st.integers(2, 30))
def test_cut_never_exceeds_the_limit_and_accounts_for_every_token(text: str, limit: int) -> None:
    [cut] = TOKENIZER.encode([text], max_tokens=limit)
    assert len(cut.ids) <= limit
    assert len(cut.ids) + cut.cut_tokens == TOKENIZER.count(text)


def test_lone_surrogate_is_refused_and_the_input_named() -> None:
    with pytest.raises(TokenizerError, match="input 1 holds a lone surrogate"):
        TOKENIZER.count_batch(["fine", "not \ud800 fine", "fine"])


@pytest.mark.parametrize(("text", "valid"), [("", True), ("\U0001f600", True), ("\udfff", False)])
def test_is_unicode_tells_lone_surrogates(text: str, valid: bool) -> None:
    assert is_unicode(text) is valid


def test_shipped_padding_and_truncation_are_stripped(tmp_path: Path) -> None:
    spec = json.loads(TOKENIZER_FILE.read_text(encoding="utf-8"))
    spec["truncation"] = {
        "direction": "Right",
        "max_length": 8,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    spec["padding"] = {
        "strategy": {"Fixed": 32},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    tokenizer = TextTokenizer(file)
    assert tokenizer.count("a") == 3
    assert tokenizer.count("a " * 50) == 52


@pytest.mark.parametrize("content", [None, "{}"])
def test_missing_or_broken_file_is_a_model_error(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json") as caught:
        TextTokenizer(file)
    assert caught.value.__cause__ is not None
