"""Rerank: a cross-encoder beside CrossEncoder.predict; late interaction beside embedding."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from typing import Any

from tests.bench.http_client import ask, post
from tests.bench.processes import Server, ragplane, script
from tests.bench.report import table
from tests.bench.serve.cross_encoder import cross_encoder
from tests.bench.serve.options import Options
from tests.bench.texts import texts_of

PAIRS = 50
QUERY_TOKENS, DOCUMENT_TOKENS = 12, 200
_CALLS_PER_ROUND = 4


def measure(options: Options) -> list[str]:
    """Milliseconds of a call, each way."""
    calls = options.rounds * _CALLS_PER_ROUND
    return [*_cross_encoder(calls), "", *_late_interaction(calls)]


def _cross_encoder(calls: int) -> list[str]:
    folder = str(cross_encoder())
    ours_ms, theirs_ms, scores = [], [], []
    with (
        ragplane(RAGPLANE_RERANK_MODEL=folder) as server,
        script("sentence_transformers_script") as reference,
    ):
        for call in range(-1, calls):  # the first one warms up
            query, texts = _pairs(call)
            spent_ms, rows = _timed(server, "/rerank", {"query": query, "texts": texts})
            theirs = reference.call("predict", folder=folder, query=query, texts=texts)
            if call >= 0:
                scores += [(row["score"], theirs["scores"][row["index"]]) for row in rows]
                ours_ms.append(spent_ms)
                theirs_ms.append(theirs["seconds"] * 1000)
    rows = [
        ["Ragplane, /rerank", *_cells(ours_ms), "1.00"],
        ["CrossEncoder.predict", *_cells(theirs_ms), f"{min(theirs_ms) / min(ours_ms):.2f}"],
    ]
    largest = max(abs(one - other) for one, other in scores)
    least, most = min(scores)[0], max(scores)[0]
    note = f"scores from {least:.3f} to {most:.3f}; the largest difference of one is {largest:.6f}"
    return [*table(["cross-encoder", "ms, best", "median", "ratio"], rows), "", note]


def _late_interaction(calls: int) -> list[str]:
    embed_ms, rerank_ms = [], []
    with ragplane() as server:
        for call in range(-1, calls):
            query, texts = _pairs(call)  # new documents each time: no vectors are cached
            body = {"input": texts, "encoding_format": "base64"}
            embedding, _ = _timed(server, "/v1/embeddings", body)
            reranking, _ = _timed(server, "/rerank", {"query": query, "texts": texts})
            if call >= 0:
                embed_ms.append(embedding)
                rerank_ms.append(reranking)
    rows = [
        ["embed the documents", *_cells(embed_ms), "1.00"],
        ["rerank them", *_cells(rerank_ms), f"{min(rerank_ms) / min(embed_ms):.2f}"],
    ]
    return table(["late interaction", "ms, best", "median", "ratio"], rows)


def _pairs(seed: int) -> tuple[str, list[str]]:
    query, *texts = texts_of([QUERY_TOKENS] + [DOCUMENT_TOKENS] * PAIRS, seed=1000 + seed)
    return query, texts


def _timed(server: Server, path: str, body: dict[str, Any]) -> tuple[float, Any]:
    request = post(path, body)
    with server.running():
        started = time.perf_counter()
        answer = asyncio.run(ask(server.address, request))
        spent_ms = (time.perf_counter() - started) * 1000
    return spent_ms, json.loads(answer)


def _cells(spent_ms: Sequence[float]) -> list[str]:
    return [f"{min(spent_ms):,.0f}", f"{statistics.median(spent_ms):,.0f}"]
