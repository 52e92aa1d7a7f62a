"""Tokenizers with a few dozen tokens, one of each kind, for the tiny models beside them."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

WORDS = ("green", "house", "river", "the", "of", "and", "##ing", "##s", "answer", "question")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:?!'"


def word_piece(special: Sequence[str]) -> Tokenizer:
    """Lower-cased words, and single letters for those that are unknown."""
    letters = [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
    vocabulary = {token: number for number, token in enumerate([*special, *WORDS, *letters])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return _with_special(tokenizer, special)


def byte_pairs(special: Sequence[str]) -> Tokenizer:
    """Bytes and a few merges: no text is unknown."""
    tokens = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "the", "Ġt", "in"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "t"), ("i", "n")]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _with_special(tokenizer, special)


def unigram(special: Sequence[str]) -> Tokenizer:
    """SentencePiece's kind; `<unk>` must be among the special tokens."""
    words = [f"▁{word}" for word in WORDS if not word.startswith("#")]
    scores = [(token, 0.0) for token in special]
    scores += [(word, -2.0) for word in words] + [(letter, -6.0) for letter in ("▁", *LETTERS)]
    tokenizer = Tokenizer(models.Unigram([*scores, ("<mask>", 0.0)], special.index("<unk>")))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _with_special(tokenizer, (*special, "<mask>"))


def pair_template(
    tokenizer: Tokenizer, first: str, last: str, rest: str
) -> processors.TemplateProcessing:
    """`first` A `last`, and for pairs `first` A `rest`."""
    marks = [(token, tokenizer.token_to_id(token)) for token in (first, last)]
    return processors.TemplateProcessing(f"{first} $A {last}", f"{first} $A {rest}", marks)


def _with_special(tokenizer: Tokenizer, special: Sequence[str]) -> Tokenizer:
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    return tokenizer
