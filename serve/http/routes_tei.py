"""The inference routes of Text Embeddings Inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from starlette.requests import Request
from starlette.responses import Response

from ragplane.core.errors import EmptyInputError, InputError
from serve.backends.base import TokenIds
from serve.encoder import Predictions
from serve.http.answers import Label, RankedText, TermWeight
from serve.http.inference import MOST_CANDIDATES, infer, lane_for, terms_of
from serve.http.operations import post
from serve.http.rows import float_row, join_rows
from serve.http.schemas import (
    EmbedBody,
    EncodeBody,
    PredictBody,
    RerankBody,
    SimilarityBody,
    SimilarityParameters,
    as_inputs,
    check_batch,
    check_texts,
)
from serve.http.services import Services
from serve.loaded_model import LoadedModel
from serve.requests import EmbedRequest, EncodeRequest, PredictRequest, RerankRequest

JSON = "application/json"


@post("/embed", body=EmbedBody, answer=list[list[float]])
async def embed(request: Request, body: EmbedBody, at: Services) -> Response:
    """Embed one input or a batch."""
    model = at.pick("embed", body.model)
    inputs = _inputs(body, at)
    asked = EmbedRequest(
        inputs=inputs,
        prompt=_prompt(model, body.prompt_name, inputs),
        truncate=body.truncate,
        direction=body.truncation_direction,
        normalize=body.normalize,
        dimensions=body.dimensions,
        terms=terms_of(request, lane_for(len(inputs))),
    )
    result, headers = await infer(request, "embeddings", model, at.encoder.run_embed, asked)
    content = await join_rows(result.vectors, lambda _, row: float_row(row))
    return Response(content, media_type=JSON, headers=headers)


@post("/embed_sparse", body=EncodeBody, answer=list[list[TermWeight]])
async def embed_sparse(request: Request, body: EncodeBody, at: Services) -> Response:
    """Term weights of one input or a batch, by vocabulary id."""
    model = at.pick("embed_sparse", body.model)
    asked = _encode(request, model, body, at)
    result, headers = await infer(request, "embeddings", model, at.encoder.run_embed_sparse, asked)
    content = await join_rows(result.weights, lambda _, weights: orjson.dumps(_terms(weights)))
    return Response(content, media_type=JSON, headers=headers)


@post("/embed_all", body=EncodeBody, answer=list[list[list[float]]])
async def embed_all(request: Request, body: EncodeBody, at: Services) -> Response:
    """One vector for each token of each input, special tokens included."""
    model = at.pick("embed_all", body.model)
    asked = _encode(request, model, body, at)
    result, headers = await infer(request, "embeddings", model, at.encoder.run_embed_all, asked)
    content = await join_rows(result.vectors, lambda _, rows: float_row(rows))
    return Response(content, media_type=JSON, headers=headers)


@post("/rerank", body=RerankBody, answer=list[RankedText])
async def rerank(request: Request, body: RerankBody, at: Services) -> Response:
    """Score texts against a query, best first; ties stay in input order."""
    model = at.pick("rerank", body.model)
    check_batch(body.texts, at.settings.max_client_batch_size, "texts")
    check_texts(body.texts, "texts")
    asked = RerankRequest(
        query=body.query,
        texts=body.texts,
        truncate=body.truncate,
        direction=body.truncation_direction,
        raw_scores=body.raw_scores,
        terms=terms_of(request, lane_for(len(body.texts), MOST_CANDIDATES)),
    )
    result, headers = await infer(request, "rerank", model, at.encoder.run_rerank, asked)
    ranked = [
        {"index": index, "score": result.scores[index]}
        | ({"text": body.texts[index]} if body.return_text else {})
        for index in result.ranking()
    ]
    return Response(orjson.dumps(ranked), media_type=JSON, headers=headers)


@post("/predict", body=PredictBody, answer=list[Label] | list[list[Label]])
async def predict(request: Request, body: PredictBody, at: Services) -> Response:
    """The labels of a text or a pair, best first; of a batch, one such list for each."""
    model = at.pick("predict", body.model)
    inputs = _sequences(body.inputs)
    check_batch(inputs, at.settings.max_client_batch_size, "inputs")
    asked = PredictRequest(
        inputs=inputs,
        truncate=body.truncate,
        direction=body.truncation_direction,
        raw_scores=body.raw_scores,
        terms=terms_of(request, lane_for(len(inputs), MOST_CANDIDATES)),
    )
    result, headers = await infer(request, "predict", model, at.encoder.run_predict, asked)
    rows = _labelled(result, model.files.labels)
    content = orjson.dumps(rows if _is_batch(body.inputs) else rows[0])
    return Response(content, media_type=JSON, headers=headers)


@post("/similarity", body=SimilarityBody, answer=list[float])
async def similarity(request: Request, body: SimilarityBody, at: Services) -> Response:
    """The cosine of each sentence and the source sentence, from -1 to 1."""
    model = at.pick("embed", body.model)
    source, sentences = body.inputs.source_sentence, body.inputs.sentences
    check_batch(sentences, at.settings.max_client_batch_size, "sentences")
    check_texts([source], "source_sentence")
    check_texts(sentences, "sentences")
    how = body.parameters or SimilarityParameters()
    asked = EmbedRequest(
        inputs=[source, *sentences],
        prompt=model.prompt_named(how.prompt_name),
        truncate=how.truncate,
        direction=how.truncation_direction,
        normalize=True,
        terms=terms_of(request, lane_for(len(sentences))),
    )
    result, headers = await infer(request, "embeddings", model, at.encoder.run_embed, asked)
    cosines = np.clip(result.vectors[1:] @ result.vectors[0], -1.0, 1.0)
    return Response(float_row(cosines), media_type=JSON, headers=headers)


OPERATIONS = (embed, embed_sparse, embed_all, rerank, predict, similarity)


def _inputs(body: EncodeBody, at: Services) -> list[str | TokenIds]:
    inputs = as_inputs(body.inputs)
    check_batch(inputs, at.settings.max_client_batch_size, "inputs")
    return inputs


def _encode(request: Request, model: LoadedModel, body: EncodeBody, at: Services) -> EncodeRequest:
    inputs = _inputs(body, at)
    return EncodeRequest(
        inputs=inputs,
        prompt=_prompt(model, body.prompt_name, inputs),
        truncate=body.truncate,
        direction=body.truncation_direction,
        terms=terms_of(request, lane_for(len(inputs))),
    )


def _prompt(model: LoadedModel, name: str | None, inputs: Sequence[str | TokenIds]) -> str:
    if name is not None and any(isinstance(item, tuple) for item in inputs):
        message = "prompt_name needs texts: token ids take no prompt"
        raise InputError(message, param="prompt_name")
    return model.prompt_named(name)


def _terms(weights: Mapping[int, float]) -> list[dict[str, float]]:
    return [{"index": index, "value": value} for index, value in weights.items()]


def _is_batch(inputs: str | Sequence[str | Sequence[str]]) -> bool:
    return not isinstance(inputs, str) and not all(isinstance(item, str) for item in inputs)


def _sequences(
    inputs: str | Sequence[str | Sequence[str]],
) -> list[tuple[str] | tuple[str, str]]:
    """A text or a pair for each input; a flat list is one input."""
    if isinstance(inputs, str):
        return [_sequence([inputs])]
    if not _is_batch(inputs):
        return [_sequence(inputs)] if inputs else []
    return [_sequence(item) for item in inputs]


def _sequence(parts: Sequence[object]) -> tuple[str] | tuple[str, str]:
    texts = [part for part in parts if isinstance(part, str)]
    if "" in texts or not texts:
        raise EmptyInputError("a text in inputs is empty", param="inputs")
    if len(texts) > 2:
        message = f"inputs: {len(texts)} texts in one list; an input is one text or a pair"
        raise InputError(message, param="inputs")
    return (texts[0],) if len(texts) == 1 else (texts[0], texts[1])


def _labelled(result: Predictions, labels: Sequence[str]) -> list[list[dict[str, Any]]]:
    """The labels of each input with their scores, best first; ties in the model's order."""
    return [
        [{"label": labels[i], "score": float(row[i])} for i in np.argsort(-row, kind="stable")]
        for row in result.scores
    ]
