"""From what a request carries to token ids: checks, prompts, truncation."""

from __future__ import annotations

from collections.abc import Sequence

from ragplane.core.errors import EmptyInputError, LimitError
from ragplane.core.tokens import TokenizedText, TruncationDirection
from serve.backends.base import ModelInput, TokenIds
from serve.loaded_model import LoadedModel


def prepare_inputs(
    model: LoadedModel,
    inputs: Sequence[str | TokenIds],
    first: int = 0,
    *,
    prompt: str = "",
    truncate: bool = True,
    direction: TruncationDirection = "right",
    param: str = "input",
    max_tokens: int | None = None,
) -> list[TokenizedText]:
    """Token ids of each input, cut to the model's limit or `max_tokens`; token ids stay as they
    are. In errors `param` and the position, counted from `first`, name an input.

    Raises EmptyInputError, TokenizerError, or LimitError: ids outside the vocabulary, or too long
    for the model with `truncate` off.
    """
    for position, item in enumerate(inputs):
        _check(model, item, _name(inputs, first + position, param), param)
    limit = min(model.files.max_tokens, max_tokens or model.files.max_tokens)
    texts = [prompt + item for item in inputs if isinstance(item, str)]
    encoded = iter(model.tokenizer.encode(texts, max_tokens=limit, direction=direction))
    prepared = [
        next(encoded) if isinstance(item, str) else _cut_ids(item, limit, direction)
        for item in inputs
    ]
    _require_tokens(prepared, first, param)
    if not truncate:
        _require_uncut(model, prepared, first, param)
    return prepared


def prepare_pairs(
    model: LoadedModel,
    query: str,
    texts: Sequence[str],
    *,
    truncate: bool,
    direction: TruncationDirection = "right",
    max_text_tokens: int | None = None,
) -> list[TokenizedText]:
    """The query with each text, for a cross-encoder; only the text is cut. Raises as above."""
    if not query:
        raise EmptyInputError("the query is empty", param="query")
    for position, text in enumerate(texts):
        if not text:
            raise EmptyInputError(f"{_name(texts, position, 'text')} is empty", param="text")
    pairs = model.tokenizer.encode_pairs(
        query,
        texts,
        max_tokens=model.files.max_tokens,
        max_text_tokens=max_text_tokens,
        direction=direction,
    )
    _require_tokens(pairs, 0, "text")
    if not truncate:
        _require_uncut(model, pairs, 0, "text")
    return pairs


def model_input(text: TokenizedText, *, pooled: bool = False) -> ModelInput:
    """What a backend takes of a text, `pooled` or not."""
    return ModelInput(text.ids, text.second_at, pooled)


def check_text_limit(max_text_tokens: int | None) -> None:
    """Raise LimitError for a limit that would leave nothing of a text."""
    if max_text_tokens is not None and max_text_tokens < 1:
        message = f"max_tokens_per_doc must be at least 1, not {max_text_tokens}"
        raise LimitError(message, param="max_tokens_per_doc")


def _check(model: LoadedModel, item: str | TokenIds, where: str, param: str) -> None:
    if not item:
        raise EmptyInputError(f"{where} is empty", param=param)
    if isinstance(item, str):
        return
    vocabulary = model.files.vocabulary_size
    if min(item) < 0 or max(item) >= vocabulary:
        message = f"{where} holds a token id outside 0 to {vocabulary - 1}"
        raise LimitError(message, param=param)


def _require_tokens(prepared: Sequence[TokenizedText], first: int, param: str) -> None:
    """A tokenizer without special tokens may make nothing of a text."""
    for position, text in enumerate(prepared, first):
        if not text.ids:
            raise EmptyInputError(f"{_name(prepared, position, param)} has no tokens", param=param)


def _require_uncut(
    model: LoadedModel, prepared: Sequence[TokenizedText], first: int, param: str
) -> None:
    limit = model.files.max_tokens
    for position, text in enumerate(prepared, first):
        tokens = len(text.ids) + text.cut_tokens
        if tokens > limit:
            name = _name(prepared, position, param)
            message = f"{name} has {tokens} tokens, and the model takes {limit}"
            raise LimitError(message, param=param)


def _name(inputs: Sequence[object], position: int, param: str) -> str:
    return f"the {param}" if len(inputs) == 1 and position == 0 else f"{param} {position}"


def _cut_ids(ids: TokenIds, limit: int, direction: TruncationDirection) -> TokenizedText:
    kept = ids[:limit] if direction == "right" else ids[-limit:]
    return TokenizedText(kept, (False,) * len(kept), len(ids) - len(kept))
