"""`/v1/embeddings` and `/v1/models`, as OpenAI's clients expect them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from ragplane.core.errors import InputError
from serve.backend import TokenIds
from serve.encoder import Embeddings, InputType, Vectors
from serve.http.inference import infer, note_model
from serve.http.rows import base64_row, float_row, join_rows
from serve.http.schemas import OpenAIEmbeddingsBody, as_inputs, check_batch
from serve.http.services import Services, services
from serve.loaded_model import LoadedModel
from serve.requests import EmbedRequest

router = APIRouter()


@router.post("/v1/embeddings")
@router.post("/embeddings")
async def embeddings(
    request: Request, body: OpenAIEmbeddingsBody, at: Annotated[Services, Depends(services)]
) -> Response:
    """Embed one input or a batch."""
    model = at.encoder.require_embedder()
    note_model(body.model, model)
    inputs = as_inputs(body.input)
    check_batch(inputs, at.settings.max_client_batch_size, "input")
    prompt = _prompt(model, body.input_type, inputs)
    asked = EmbedRequest(inputs, prompt, dimensions=body.dimensions)
    result, headers = await infer(request, "embeddings", model, at.encoder.run_embed, asked)
    content = await _content(result, model.files.name, as_base64=body.encoding_format == "base64")
    return Response(content, media_type="application/json", headers=headers)


@router.get("/v1/models")
async def models(at: Annotated[Services, Depends(services)]) -> dict[str, Any]:
    """Every served model with its kind."""
    served = {"embed": at.encoder.embedder, "rerank": at.encoder.reranker}
    data = [
        {"id": model.files.name, "object": "model", "created": 0, "owned_by": "ragplane"}
        | {"kind": kind}
        for kind, model in served.items()
        if model is not None
    ]
    return {"object": "list", "data": data}


def _prompt(
    model: LoadedModel, input_type: InputType | None, inputs: Sequence[str | TokenIds]
) -> str:
    if input_type is None:
        return model.prompt_named(None)
    if any(isinstance(item, tuple) for item in inputs):
        raise InputError("input_type needs texts: token ids take no prompt", param="input_type")
    return model.prompt_for(input_type)


async def _content(result: Embeddings, model: str, *, as_base64: bool) -> str:
    encode = base64_row if as_base64 else float_row

    def item(index: int, row: Vectors) -> str:
        return f'{{"object":"embedding","index":{index},"embedding":{encode(row)}}}'

    usage = json.dumps({"prompt_tokens": result.tokens, "total_tokens": result.tokens})
    data = await join_rows(result.vectors, item)
    return f'{{"object":"list","data":{data},"model":{json.dumps(model)},"usage":{usage}}}'
