"""`/v1/rerank` and `/v2/rerank`, as the clients of Cohere and Jina expect them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from ragplane.core.errors import LimitError
from serve.http.inference import infer, note_model
from serve.http.schemas import CohereRerankBody, check_batch
from serve.http.services import Services, services
from serve.requests import RerankRequest

router = APIRouter()


@router.post("/v1/rerank")
@router.post("/v2/rerank")
async def rerank(
    request: Request, body: CohereRerankBody, at: Annotated[Services, Depends(services)]
) -> Response:
    """The `top_n` best documents for a query, best first; ties stay in input order."""
    model = at.encoder.require_reranker()
    note_model(body.model, model)
    check_batch(body.documents, at.settings.max_client_batch_size, "documents")
    if body.top_n is not None and body.top_n < 1:
        raise LimitError(f"top_n must be at least 1, not {body.top_n}", param="top_n")
    texts = [item if isinstance(item, str) else item.text for item in body.documents]
    asked = RerankRequest(body.query, texts, max_text_tokens=body.max_tokens_per_doc)
    result, headers = await infer(request, "rerank", model, at.encoder.run_rerank, asked)
    results: list[dict[str, Any]] = [
        {"index": index, "relevance_score": result.scores[index]}
        | ({"document": {"text": texts[index]}} if body.return_documents else {})
        for index in result.ranking()[: body.top_n]
    ]
    version = request.url.path[2]
    content = {
        "id": request.state.request_id,
        "model": model.files.name,
        "results": results,
        "meta": {"api_version": {"version": version}, "billed_units": {"search_units": 1}},
        "usage": {"total_tokens": result.tokens},
    }
    return JSONResponse(content, headers=headers)
