"""`/tokenize` and `/decode`, as Text Embeddings Inference has them. No model runs for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from ragplane.core.errors import EmptyInputError, LimitError
from ragplane.core.tokens import TextTokenizer
from serve.backends.base import TokenIds
from serve.http.answers import Token
from serve.http.inference import lane_for, terms_of
from serve.http.operations import post
from serve.http.schemas import DecodeBody, TokenizeBody, as_inputs, check_batch, check_texts
from serve.http.services import Services
from serve.loaded_model import LoadedModel

JSON = "application/json"


@post("/tokenize", body=TokenizeBody, answer=list[list[Token]], inference=False)
async def tokenize(request: Request, body: TokenizeBody, at: Services) -> Response:
    """The tokens of each input. Offsets count characters of the prompt and the text."""
    model = at.any_model(body.model)
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    check_batch(texts, at.settings.max_client_batch_size, "inputs")
    check_texts(texts, "inputs")
    prompt = model.prompt_named(body.prompt_name)

    def content() -> bytes:
        special = body.add_special_tokens
        return orjson.dumps([_tokens(model.tokenizer, prompt + text, special) for text in texts])

    return await _answer(request, model, at, len(texts), content)


@post("/decode", body=DecodeBody, answer=list[str], inference=False)
async def decode(request: Request, body: DecodeBody, at: Services) -> Response:
    """The text of each list of token ids."""
    model = at.any_model(body.model)
    rows = [item for item in as_inputs(body.ids) if isinstance(item, tuple)]
    check_batch(rows, at.settings.max_client_batch_size, "ids")
    _check_ids(rows, model.files.vocabulary_size)

    def content() -> bytes:
        skip = body.skip_special_tokens
        decode = model.tokenizer.decode
        return orjson.dumps([decode(ids, skip_special_tokens=skip) for ids in rows])

    return await _answer(request, model, at, len(rows), content)


OPERATIONS = (tokenize, decode)


async def _answer(
    request: Request, model: LoadedModel, at: Services, inputs: int, content: Callable[[], bytes]
) -> Response:
    """As every route: with a permit, and on the threads of its lane."""
    terms = terms_of(request, lane_for(inputs))
    with model.batcher.admit(terms):
        return Response(await at.encoder.tokenizers.run(terms.lane, content), media_type=JSON)


def _check_ids(rows: Sequence[TokenIds], vocabulary: int) -> None:
    for ids in rows:
        if not ids:
            raise EmptyInputError("a list of ids is empty", param="ids")
        if min(ids) < 0 or max(ids) >= vocabulary:
            message = f"ids holds a token id outside 0 to {vocabulary - 1}"
            raise LimitError(message, param="ids")


def _tokens(tokenizer: TextTokenizer, text: str, special: bool) -> list[dict[str, Any]]:
    return [
        {
            "id": token_id,
            "text": token if is_special else text[start:stop],
            "special": is_special,
            "start": None if is_special else start,
            "stop": None if is_special else stop,
        }
        for token_id, token, is_special, start, stop in tokenizer.detail(text, special=special)
    ]
