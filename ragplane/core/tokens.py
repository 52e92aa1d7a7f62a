"""Counting and encoding text with a model's own tokenizer.

The padding and truncation settings that a tokenizer file ships with are stripped: ours rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tokenizers import Encoding, Tokenizer

from ragplane.core.errors import ModelError, TokenizerError

TruncationDirection = Literal["right", "left"]


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """Token ids of one input, special tokens included, and how many tokens were cut off."""

    ids: tuple[int, ...]
    special: tuple[bool, ...]
    cut_tokens: int = 0


class TextTokenizer:
    """A model's tokenizer. Thread-safe; the Rust side releases the GIL."""

    def __init__(self, file: Path) -> None:
        """Load a tokenizer.json. Raises ModelError if it is missing or unreadable."""
        try:
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the binding raises bare Exception
            raise ModelError(f"tokenizer {file}: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.special_tokens: int = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self.vocabulary_size: int = self._tokenizer.get_vocab_size(with_added_tokens=True)

    def count(self, text: str) -> int:
        """Tokens of `text`, special tokens included."""
        return len(self._encode(text).ids)

    def count_batch(self, texts: Sequence[str]) -> list[int]:
        """As `count`, for many texts at once."""
        return [len(encoding.ids) for encoding in self._encode_batch(texts, special=True)]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Character spans of the tokens of `text`, without special tokens."""
        return list(self._encode_batch([text], special=False)[0].offsets)

    def encode(
        self,
        texts: Sequence[str],
        *,
        max_tokens: int | None = None,
        direction: TruncationDirection = "right",
    ) -> list[TokenizedText]:
        """Encode `texts` with special tokens, each cut to `max_tokens` in all.

        `direction` names the side that loses tokens. Raises TokenizerError for text that is not
        Unicode.
        """
        encodings = self._encode_batch(texts, special=True)
        return [_cut(encoding, max_tokens, direction) for encoding in encodings]

    def detail(self, text: str, *, special: bool = True) -> list[tuple[int, str, bool, int, int]]:
        """Each token of `text` as (id, token, is special, start, end)."""
        encoding = self._encode_batch([text], special=special)[0]
        flags = [bool(flag) for flag in encoding.special_tokens_mask]
        return [
            (token_id, token, is_special, start, end)
            for token_id, token, is_special, (start, end) in zip(
                encoding.ids, encoding.tokens, flags, encoding.offsets, strict=True
            )
        ]

    def _encode(self, text: str) -> Encoding:
        return self._encode_batch([text], special=True)[0]

    def _encode_batch(self, texts: Sequence[str], *, special: bool) -> list[Encoding]:
        try:
            return self._tokenizer.encode_batch(list(texts), add_special_tokens=special)
        except (TypeError, UnicodeEncodeError) as error:
            position = next((i for i, text in enumerate(texts) if not is_unicode(text)), None)
            where = "the text" if position is None else f"input {position}"
            raise TokenizerError(f"{where} holds a lone surrogate, which is not Unicode") from error


def is_unicode(text: str) -> bool:
    """False for a text with lone surrogates, which no encoding can carry."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _cut(
    encoding: Encoding, max_tokens: int | None, direction: TruncationDirection
) -> TokenizedText:
    ids, flags = encoding.ids, [bool(flag) for flag in encoding.special_tokens_mask]
    over = 0 if max_tokens is None else len(ids) - max_tokens
    if over <= 0:
        return TokenizedText(tuple(ids), tuple(flags))
    content = [i for i, special in enumerate(flags) if not special]
    over = min(over, len(content))
    lost = set(content[-over:] if direction == "right" else content[:over])
    keep = [i for i in range(len(ids)) if i not in lost]
    return TokenizedText(tuple(ids[i] for i in keep), tuple(flags[i] for i in keep), over)
