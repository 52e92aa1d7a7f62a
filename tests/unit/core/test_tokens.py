"""Counting and cutting with a real tokenizer."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE, WordLevel

from ragplane.core.errors import ModelError, TokenizerError
from ragplane.core.models import BUNDLED, read_model
from ragplane.core.tokens import TextTokenizer, TruncationDirection, is_unicode

TOKENIZER_FILE = read_model(BUNDLED).folder / "tokenizer.json"
TOKENIZER = TextTokenizer(TOKENIZER_FILE)
CLS, SEP = 101, 102
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


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


@pytest.mark.parametrize(
    ("direction", "kept"), [("right", "green house [SEP] a b"), ("left", "green house [SEP] d e")]
)
def test_only_the_text_of_a_pair_is_cut(direction: TruncationDirection, kept: str) -> None:
    [pair] = TOKENIZER.encode_pairs("green house", ["a b c d e"], max_tokens=7, direction=direction)
    assert TOKENIZER.decode(pair.ids, skip_special_tokens=False) == f"[CLS] {kept} [SEP]"
    assert pair.special == (True, False, False, True, False, False, True)
    assert (pair.cut_tokens, pair.second_at) == (3, 4)


def test_pairs_are_those_of_the_model_s_own_template() -> None:
    raw = Tokenizer.from_file(str(TOKENIZER_FILE))
    raw.no_padding()
    raw.no_truncation()
    texts = ["a river", "", "the [SEP] house"]
    for text, pair in zip(
        texts, TOKENIZER.encode_pairs("green house", texts, max_tokens=100), strict=True
    ):
        want = raw.encode("green house", text)
        assert list(pair.ids) == want.ids
        assert list(pair.special) == [bool(flag) for flag in want.special_tokens_mask]
        assert pair.second_at == want.type_ids.index(1)
        assert pair.cut_tokens == 0
    [single] = TOKENIZER.encode([texts[2]])
    assert list(single.ids) == raw.encode(texts[2]).ids
    assert list(single.special) == [bool(x) for x in raw.encode(texts[2]).special_tokens_mask]
    assert single.second_at is None


@pytest.mark.parametrize("direction", ["right", "left"])
def test_limit_of_the_text_counts_its_own_tokens_alone(direction: TruncationDirection) -> None:
    cut, short = TOKENIZER.encode_pairs(
        "green house", ["a b c", "a"], max_tokens=50, max_text_tokens=2, direction=direction
    )
    kept = "a b" if direction == "right" else "b c"
    assert cut == replace(
        TOKENIZER.encode_pairs("green house", [kept], max_tokens=50)[0], cut_tokens=1
    )
    assert short == TOKENIZER.encode_pairs("green house", ["a"], max_tokens=50)[0]


@pytest.mark.parametrize(
    ("limit", "kept"), [(6, "[CLS] a b c [SEP] [SEP]"), (1, "[CLS] [SEP] [SEP]")]
)
def test_query_over_the_limit_is_cut_and_special_tokens_stay(limit: int, kept: str) -> None:
    [pair] = TOKENIZER.encode_pairs("a b c d", ["green house"], max_tokens=limit)
    assert TOKENIZER.decode(pair.ids, skip_special_tokens=False) == kept
    assert len(pair.ids) + pair.cut_tokens == 9


@given(TEXT, TEXT, st.integers(3, 40), st.integers(0, 30))
def test_pair_never_exceeds_its_limits_and_accounts_for_every_token(
    query: str, text: str, limit: int, text_limit: int
) -> None:
    [pair] = TOKENIZER.encode_pairs(query, [text], max_tokens=limit, max_text_tokens=text_limit)
    [uncut] = TOKENIZER.encode_pairs(query, [text], max_tokens=10_000)
    assert len(pair.ids) <= limit
    assert len(pair.ids) + pair.cut_tokens == len(uncut.ids)
    assert pair.second_at is not None
    assert len(pair.ids) - pair.second_at - 1 <= text_limit


def test_decoding_gives_the_text_back() -> None:
    [text] = TOKENIZER.encode(["Green houses!"])
    assert TOKENIZER.decode(text.ids) == "green houses!"
    assert TOKENIZER.decode(text.ids, skip_special_tokens=False) == "[CLS] green houses! [SEP]"


def test_a_very_long_text_is_cut_in_little_more_than_its_encoding() -> None:
    text = "green house " * 50_000
    started_s = time.process_time()
    TOKENIZER.count(text)
    counted_s = time.process_time() - started_s
    started_s = time.process_time()
    [cut] = TOKENIZER.encode([text], max_tokens=256)
    [pair] = TOKENIZER.encode_pairs("house", [text], max_tokens=256)
    assert (len(cut.ids), cut.cut_tokens) == (256, 100_000 - 254)
    assert (len(pair.ids), pair.cut_tokens) == (256, 100_000 - 252)
    assert time.process_time() - started_s < 10 * counted_s


def test_lowercase_lowers_before_the_model_s_own_normaliser(tmp_path: Path) -> None:
    vocabulary = {"[UNK]": 0, "green": 1, "Green": 2, "a": 3}
    raw = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    raw.save(str(tmp_path / "tokenizer.json"))
    cased = TextTokenizer(tmp_path / "tokenizer.json")
    lowered = TextTokenizer(tmp_path / "tokenizer.json", lowercase=True)
    assert [cased.encode(["Green"])[0].ids, lowered.encode(["Green"])[0].ids] == [(2,), (1,)]
    assert cased.encode_pairs("a", ["green"], max_tokens=9)[0].second_at == 1


@given(TEXT, st.integers(2, 30))
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
    """Behaviour 18."""
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


def test_missing_file_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        TextTokenizer(tmp_path / "tokenizer.json")


def test_broken_file_is_a_model_error(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("{}")
    with pytest.raises(ModelError, match=r"tokenizer\.json") as caught:
        TextTokenizer(file)
    assert caught.value.__cause__ is not None


def test_tokenizer_without_a_token_for_plain_text_is_refused(tmp_path: Path) -> None:
    Tokenizer(BPE({"b": 0}, [])).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelError, match="no token for 'a'"):
        TextTokenizer(tmp_path / "tokenizer.json")


def test_text_that_the_tokenizer_has_no_token_for_is_refused(tmp_path: Path) -> None:
    Tokenizer(WordLevel({"a": 0}, unk_token="[UNK]")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(TokenizerError, match="refused the text"):
        TextTokenizer(tmp_path / "tokenizer.json").count("b")
