"""Counting and encoding text with a model's own tokenizer.

The padding and truncation settings that a tokenizer file ships with are stripped: ours rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tokenizers import Encoding, Tokenizer, normalizers, pre_tokenizers

from ragplane.core.errors import ModelError, TokenizerError

TruncationDirection = Literal["right", "left"]

_PROBE = "a"


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """Token ids of one input, special tokens included, and how many tokens were cut off.

    `second_at` is where the second text of a pair starts, for models that tell the two apart by
    token types; None for one text and for the other models.
    """

    ids: tuple[int, ...]
    special: tuple[bool, ...]
    cut_tokens: int = 0
    second_at: int | None = None


class TextTokenizer:
    """A model's tokenizer. Thread-safe; the Rust side releases the GIL."""

    def __init__(self, file: Path, *, lowercase: bool = False) -> None:
        """Load a tokenizer.json; `lowercase` lowers all text first.

        Raises ModelError if the file is missing or unreadable.
        """
        if not file.is_file():
            raise ModelError(f"model folder {file.parent} has no {file.name}, which is needed")
        try:
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(file))
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            single = self._tokenizer.encode(_PROBE)
            pair = self._tokenizer.encode(_PROBE, _PROBE)
        except Exception as error:  # the binding raises bare Exception
            raise ModelError(f"tokenizer {file}: {error}") from error
        if lowercase:
            self._tokenizer.normalizer = _lowercased(self._tokenizer)
        self._single, self._pair = _template(single, 1), _template(pair, 2)
        self._has_types = (1, 1) in zip(pair.sequence_ids, pair.type_ids, strict=True)
        self.special_tokens: int = sum(map(len, self._single))
        self.vocabulary_size: int = self._tokenizer.get_vocab_size(with_added_tokens=True)
        # Words are tokenized apart: a text parted at white space has the tokens of its parts.
        self.counts_add_up = isinstance(
            self._tokenizer.pre_tokenizer, pre_tokenizers.BertPreTokenizer
        )

    def count(self, text: str) -> int:
        """Tokens of `text`, special tokens included."""
        return self.count_batch([text])[0]

    def count_batch(self, texts: Sequence[str]) -> list[int]:
        """As `count`, for many texts at once."""
        return [len(encoding) + self.special_tokens for encoding in self._encode_batch(texts)]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Character spans of the tokens of `text`, without special tokens."""
        return list(self._encode_batch([text], offsets=True)[0].offsets)

    def encode(
        self,
        texts: Sequence[str],
        *,
        max_tokens: int | None = None,
        direction: TruncationDirection = "right",
    ) -> list[TokenizedText]:
        """Encode `texts` with special tokens, each cut to `max_tokens` in all.

        `direction` names the side that loses tokens. Special tokens always stay. Raises
        TokenizerError for text that is not Unicode.
        """
        room = None if max_tokens is None else max_tokens - self.special_tokens
        contents = [encoding.ids for encoding in self._encode_batch(texts)]
        kept = [_cut(ids, room, direction) for ids in contents]
        return [
            _joined(self._single, [now], len(ids) - len(now))
            for ids, now in zip(contents, kept, strict=True)
        ]

    def encode_pairs(
        self,
        query: str,
        texts: Sequence[str],
        *,
        max_tokens: int,
        max_text_tokens: int | None = None,
        direction: TruncationDirection = "right",
    ) -> list[TokenizedText]:
        """Encode `query` with each of `texts` as the model's pair, cut to `max_tokens` in all.

        Only the text is cut, before that to its own `max_text_tokens`. The query loses tokens only
        where it alone is over the limit; the special tokens always stay. Raises TokenizerError for
        text that is not Unicode.
        """
        room = max_tokens - sum(map(len, self._pair))
        asked = self._encode_batch([query])[0].ids
        first = _cut(asked, room, direction)
        limit = max(room, 0) - len(first)
        if max_text_tokens is not None:
            limit = min(limit, max_text_tokens)
        pairs = []
        for encoding in self._encode_batch(texts):
            ids = encoding.ids
            second = _cut(ids, limit, direction)
            lost = len(asked) - len(first) + len(ids) - len(second)
            pairs.append(_joined(self._pair, [first, second], lost, typed=self._has_types))
        return pairs

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of `ids`, each from 0 to `vocabulary_size` - 1."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def detail(self, text: str, *, special: bool = True) -> list[tuple[int, str, bool, int, int]]:
        """Each token of `text` as (id, token, is special, start, end)."""
        encoding = self._encode_batch([text], special=special, offsets=True)[0]
        flags = [bool(flag) for flag in encoding.special_tokens_mask]
        return [
            (token_id, token, is_special, start, end)
            for token_id, token, is_special, (start, end) in zip(
                encoding.ids, encoding.tokens, flags, encoding.offsets, strict=True
            )
        ]

    def _encode_batch(
        self, texts: Sequence[str], *, special: bool = False, offsets: bool = False
    ) -> list[Encoding]:
        tokenizer = self._tokenizer
        encode = tokenizer.encode_batch if offsets else tokenizer.encode_batch_fast
        try:
            return encode(list(texts), add_special_tokens=special)
        except Exception as error:  # the binding raises bare Exception
            position = next((i for i, text in enumerate(texts) if not is_unicode(text)), None)
            if position is None:
                raise TokenizerError(f"the tokenizer refused the text: {error}") from error
            message = f"input {position} holds a lone surrogate, which is not Unicode"
            raise TokenizerError(message) from error


def is_unicode(text: str) -> bool:
    """False for a text with lone surrogates, which no encoding can carry."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _cut(ids: list[int], room: int | None, direction: TruncationDirection) -> list[int]:
    if room is None or len(ids) <= room:
        return ids
    kept = max(room, 0)
    return ids[:kept] if direction == "right" else ids[len(ids) - kept :]


# The special tokens before, between and after the texts of an input.
_Template = tuple[tuple[int, ...], ...]


def _template(encoding: Encoding, texts: int) -> _Template:
    """The special tokens around the texts of a probe, which are the same around any text.

    With them, cutting needs no second pass through the tokenizer's post-processor.
    """
    gaps: list[list[int]] = [[] for _ in range(texts + 1)]
    reached = 0
    for token_id, text in zip(encoding.ids, encoding.sequence_ids, strict=True):
        if text is None:
            gaps[reached].append(token_id)
        else:
            reached = text + 1
    if reached != texts:
        raise ModelError(f"the tokenizer gives no token for {_PROBE!r}")
    return tuple(map(tuple, gaps))


def _joined(
    template: _Template, texts: Sequence[list[int]], lost: int, *, typed: bool = False
) -> TokenizedText:
    """The template with `texts` in its gaps; `typed` keeps where the second one starts."""
    ids, special = list(template[0]), [True] * len(template[0])
    second_at = None
    for number, (text, gap) in enumerate(zip(texts, template[1:], strict=True)):
        if number and typed:
            second_at = len(ids)
        ids += [*text, *gap]
        special += [False] * len(text) + [True] * len(gap)
    return TokenizedText(tuple(ids), tuple(special), lost, second_at)


def _lowercased(tokenizer: Tokenizer) -> normalizers.Normalizer:
    own = tokenizer.normalizer
    steps = [normalizers.Lowercase(), *([] if own is None else [own])]
    return normalizers.Sequence(steps)
