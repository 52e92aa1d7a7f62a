"""`/info`, as Text Embeddings Inference has it, and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from starlette.responses import Response

from ragplane.core import __version__
from serve.http.answers import InfoAnswer
from serve.http.operations import get
from serve.http.services import Services
from serve.loaded_model import LoadedModel


@get("/info", answer=InfoAnswer)
async def info(at: Services) -> Response:
    """What is served, and how it is set."""
    model, settings = at.main_model(), at.settings
    facts = _facts(model) | {
        "max_batch_tokens": settings.max_batch_tokens,
        "max_concurrent_requests": settings.max_concurrent_requests,
        "max_client_batch_size": settings.max_client_batch_size,
        "max_batch_requests": settings.max_batch_requests,
        "auto_truncate": settings.auto_truncate,
        "tokenization_workers": at.encoder.tokenizer_threads,
        "scheduling": settings.scheduling,
        "version": __version__,
        "models": [_facts(served) for served in at.encoder.registry.models],
    }
    return Response(orjson.dumps(facts), media_type="application/json")


OPERATIONS = (info,)


def _facts(model: LoadedModel) -> dict[str, object]:
    return {
        "model_id": model.files.name,
        "model_sha": model.weights_sha256,
        "model_dtype": model.dtype,
        "model_type": _model_type(model),
        "backend": model.backend_name,
        "parity": model.parity,
        "micro_batch_tokens": model.micro_batch_tokens,
        "max_input_length": model.files.max_tokens,
        "served_model_name": model.name,
        "fingerprint": model.fingerprint(),
    }


def _model_type(model: LoadedModel) -> dict[str, object]:
    files = model.files
    kinds: dict[str, object] = {}
    if "embed" in model.abilities:
        kinds["embedding"] = {"pooling": files.pooling, "dimensions": files.dimensions}
    if "embed_sparse" in model.abilities:
        kinds["embedding_sparse"] = {"pooling": files.pooling}
    if "rerank" in model.abilities:
        kinds["reranker"] = _labels(files.labels or ("relevance",))
    elif "predict" in model.abilities:
        kinds["classifier"] = _labels(files.labels)
    return kinds


def _labels(labels: Sequence[str]) -> dict[str, object]:
    numbered = {str(number): label for number, label in enumerate(labels)}
    return {"id2label": numbered, "label2id": {label: int(n) for n, label in numbered.items()}}
