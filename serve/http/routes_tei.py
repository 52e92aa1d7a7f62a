"""`/embed`, `/rerank`, `/tokenize`, `/info`, as clients of Text Embeddings Inference expect."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from ragplane.core import __version__
from ragplane.core.errors import EmptyInputError, InputError
from serve.http.inference import infer
from serve.http.rows import float_row, join_rows
from serve.http.schemas import EmbedBody, RerankBody, TokenizeBody, as_inputs, check_batch
from serve.http.services import Services, services
from serve.loaded_model import LoadedModel
from serve.requests import EmbedRequest, RerankRequest

router = APIRouter()
At = Annotated[Services, Depends(services)]


@router.post("/embed")
async def embed(request: Request, body: EmbedBody, at: At) -> Response:
    """Embed one input or a batch."""
    model = at.encoder.require_embedder()
    inputs = as_inputs(body.inputs)
    check_batch(inputs, at.settings.max_client_batch_size, "inputs")
    if body.prompt_name is not None and any(isinstance(item, tuple) for item in inputs):
        message = "prompt_name needs texts: token ids take no prompt"
        raise InputError(message, param="prompt_name")
    asked = EmbedRequest(
        inputs,
        model.prompt_named(body.prompt_name),
        normalize=body.normalize,
        dimensions=body.dimensions,
        truncate=body.truncate,
        direction=body.truncation_direction,
    )
    result, headers = await infer(request, "embeddings", model, at.encoder.run_embed, asked)
    content = await join_rows(result.vectors, lambda _, row: float_row(row))
    return Response(content, media_type="application/json", headers=headers)


@router.post("/rerank")
async def rerank(request: Request, body: RerankBody, at: At) -> Response:
    """Score texts against a query, best first; ties stay in input order."""
    model = at.encoder.require_reranker()
    check_batch(body.texts, at.settings.max_client_batch_size, "texts")
    asked = RerankRequest(
        body.query, body.texts, truncate=body.truncate, direction=body.truncation_direction
    )
    result, headers = await infer(request, "rerank", model, at.encoder.run_rerank, asked)
    ranked = [
        {"index": index, "score": result.scores[index]}
        | ({"text": body.texts[index]} if body.return_text else {})
        for index in result.ranking()
    ]
    return JSONResponse(ranked, headers=headers)


@router.post("/tokenize")
async def tokenize(body: TokenizeBody, at: At) -> list[list[dict[str, Any]]]:
    """The tokens of each input. Offsets count characters of the prompt and the text."""
    model = at.encoder.any_model()
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    check_batch(texts, at.settings.max_client_batch_size, "inputs")
    if "" in texts:
        raise EmptyInputError(f"inputs[{texts.index('')}] is empty", param="inputs")
    prompt = model.prompt_named(body.prompt_name)
    special = body.add_special_tokens

    def details() -> list[list[dict[str, Any]]]:
        return [_tokens(model, prompt + text, special) for text in texts]

    return await at.encoder.off_loop(details)


@router.get("/info")
async def info(at: At) -> dict[str, Any]:
    """What is served, and how it is set."""
    model, settings = at.encoder.any_model(), at.settings
    return {
        "model_id": model.files.name,
        "model_sha": model.weights_sha256,
        "model_dtype": model.dtype,
        "model_type": _model_type(at),
        "max_input_length": model.files.max_tokens,
        "max_batch_tokens": settings.max_batch_tokens,
        "max_concurrent_requests": settings.max_concurrent_requests,
        "max_client_batch_size": settings.max_client_batch_size,
        "auto_truncate": settings.auto_truncate,
        "tokenization_workers": at.encoder.tokenizer_threads,
        "served_model_name": model.files.name,
        "version": __version__,
        "fingerprint": model.fingerprint(),
    }


def _model_type(at: Services) -> dict[str, Any]:
    kinds: dict[str, Any] = {}
    if at.encoder.embedder is not None:
        files = at.encoder.embedder.files
        kinds["embedding"] = {"pooling": files.pooling, "dimensions": files.dimensions}
    if at.encoder.reranker is not None:
        kinds["reranker"] = {"id2label": {"0": "relevance"}, "label2id": {"relevance": 0}}
    return kinds


def _tokens(model: LoadedModel, text: str, special: bool) -> list[dict[str, Any]]:
    return [
        {
            "id": token_id,
            "text": token if is_special else text[start:stop],
            "special": is_special,
            "start": None if is_special else start,
            "stop": None if is_special else stop,
        }
        for token_id, token, is_special, start, stop in model.tokenizer.detail(
            text, special=special
        )
    ]
