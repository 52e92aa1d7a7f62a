"""`/v1/embeddings` and `/v1/models`, as OpenAI's clients expect them."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from starlette.requests import Request
from starlette.responses import Response

from ragplane.core.errors import InputError
from serve.backends.base import TokenIds
from serve.encoder import Embeddings, InputType, Vectors
from serve.http.answers import EmbeddingsAnswer, ModelsAnswer
from serve.http.inference import infer, lane_for, terms_of
from serve.http.operations import get, post
from serve.http.rows import base64_row, float_row, join_rows
from serve.http.schemas import OpenAIEmbeddingsBody, as_inputs, check_batch
from serve.http.services import Services
from serve.loaded_model import LoadedModel
from serve.requests import EmbedRequest

# In this order a model's kinds are listed; the first is what it is used for most.
_KINDS = ("embed", "embed_sparse", "rerank", "predict", "embed_all")


@post("/v1/embeddings", "/embeddings", body=OpenAIEmbeddingsBody, answer=EmbeddingsAnswer)
async def embeddings(request: Request, body: OpenAIEmbeddingsBody, at: Services) -> Response:
    """Embed one input or a batch."""
    model = at.pick("embed", body.model)
    inputs = as_inputs(body.input)
    check_batch(inputs, at.settings.max_client_batch_size, "input")
    asked = EmbedRequest(
        inputs=inputs,
        prompt=_prompt(model, body.input_type, inputs),
        dimensions=body.dimensions,
        terms=terms_of(request, lane_for(len(inputs))),
    )
    result, headers = await infer(request, "embeddings", model, at.encoder.run_embed, asked)
    content = await _content(result, model.name, as_base64=body.encoding_format == "base64")
    return Response(content, media_type="application/json", headers=headers)


@get("/v1/models", answer=ModelsAnswer)
async def models(at: Services) -> Response:
    """Every served model, with its kinds."""
    data = [_item(model) for model in at.encoder.registry.models]
    content = orjson.dumps({"object": "list", "data": data})
    return Response(content, media_type="application/json")


OPERATIONS = (embeddings, models)


def _item(model: LoadedModel) -> dict[str, object]:
    kinds = [kind for kind in _KINDS if kind in model.abilities]
    facts = {"id": model.name, "object": "model", "created": 0, "owned_by": "ragplane"}
    return facts | {"kind": kinds[0], "kinds": kinds}


def _prompt(
    model: LoadedModel, input_type: InputType | None, inputs: Sequence[str | TokenIds]
) -> str:
    if input_type is None:
        return model.prompt_named(None)
    if any(isinstance(item, tuple) for item in inputs):
        raise InputError("input_type needs texts: token ids take no prompt", param="input_type")
    return model.prompt_for(input_type)


async def _content(result: Embeddings, model: str, *, as_base64: bool) -> bytes:
    encode = base64_row if as_base64 else float_row

    def item(index: int, row: Vectors) -> bytes:
        return b'{"object":"embedding","index":%d,"embedding":%b}' % (index, encode(row))

    usage = orjson.dumps({"prompt_tokens": result.tokens, "total_tokens": result.tokens})
    data = await join_rows(result.vectors, item)
    facts = (data, orjson.dumps(model), usage)
    return b'{"object":"list","data":%b,"model":%b,"usage":%b}' % facts
