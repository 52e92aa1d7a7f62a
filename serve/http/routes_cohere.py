"""`/v1/rerank` and `/v2/rerank`, as the clients of Cohere and Jina expect them."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from ragplane.core.errors import LimitError
from serve.http.answers import CohereAnswer
from serve.http.inference import MOST_CANDIDATES, infer, lane_for, terms_of
from serve.http.operations import post
from serve.http.schemas import CohereRerankBody, check_batch, check_texts
from serve.http.services import Services
from serve.requests import RerankRequest


@post("/v1/rerank", "/v2/rerank", body=CohereRerankBody, answer=CohereAnswer)
async def rerank(request: Request, body: CohereRerankBody, at: Services) -> Response:
    """The `top_n` best documents for a query, best first; ties stay in input order."""
    model = at.pick("rerank", body.model)
    check_batch(body.documents, at.settings.max_client_batch_size, "documents")
    if body.top_n is not None and body.top_n < 1:
        raise LimitError(f"top_n must be at least 1, not {body.top_n}", param="top_n")
    texts = [item if isinstance(item, str) else item.text for item in body.documents]
    check_texts(texts, "documents")
    asked = RerankRequest(
        query=body.query,
        texts=texts,
        max_text_tokens=body.max_tokens_per_doc,
        terms=terms_of(request, lane_for(len(texts), MOST_CANDIDATES)),
    )
    result, headers = await infer(request, "rerank", model, at.encoder.run_rerank, asked)
    results: list[dict[str, Any]] = [
        {"index": index, "relevance_score": result.scores[index]}
        | ({"document": {"text": texts[index]}} if body.return_documents else {})
        for index in result.ranking()[: body.top_n]
    ]
    version = request.url.path[2]
    content = {
        "id": request.state.request_id,
        "model": model.name,
        "results": results,
        "meta": {"api_version": {"version": version}, "billed_units": {"search_units": 1}},
        "usage": {"total_tokens": result.tokens},
    }
    return Response(orjson.dumps(content), media_type="application/json", headers=headers)


OPERATIONS = (rerank,)
