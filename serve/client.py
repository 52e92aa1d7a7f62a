"""The encoder of another process: a Ragplane server over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import httpx
import numpy as np

from ragplane.core.errors import (
    ConfigError,
    EmptyInputError,
    InputError,
    LimitError,
    ModelError,
    OverloadedError,
    RagplaneError,
    TokenizerError,
    UnavailableError,
    describe,
)
from serve.address import server_url
from serve.encoder import Embeddings, InputType, RerankScores, Vectors

T = TypeVar("T")
_INTERACTIVE, _BULK = {"x-lane": "interactive"}, {"x-lane": "bulk"}
_PAUSES_S = (0.25, 0.5, 1.0)
_LONGEST_PAUSE_S = 5.0
# Small enough for the server's default limits on items and bytes, large enough to fill its batches.
_TEXTS_PER_CALL = 256
_ERRORS: Mapping[int, type[RagplaneError]] = {
    400: InputError,
    401: ConfigError,
    404: ConfigError,
    405: ConfigError,
    413: LimitError,
    422: LimitError,
    424: ModelError,
    503: UnavailableError,
}
_ERRORS_BY_TYPE: Mapping[str, type[RagplaneError]] = {
    "Empty": EmptyInputError,
    "empty_input": EmptyInputError,
    "Tokenizer": TokenizerError,
    "tokenizer": TokenizerError,
}


class HttpEncoder:
    """`Encoder` over a server at `base_url`. Busy and unreachable servers are asked again."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        timeout_s: float = 120.0,
        *,
        tenant: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`timeout_s` bounds each attempt. The server shares its time fairly among tenants.

        `transport` stands in for the network. Raises ConfigError for a `base_url` that is none.
        """
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        if tenant is not None:
            headers["x-tenant"] = tenant
        self._url = server_url(base_url)
        self._dimensions: int | None = None
        self._client = httpx.AsyncClient(
            base_url=self._url, headers=headers, timeout=timeout_s, transport=transport
        )

    async def embed(
        self, texts: Sequence[str], *, input_type: InputType = "document"
    ) -> Embeddings:
        """As `Encoder.embed`. Documents go through the server's bulk lane."""
        vectors: list[Vectors] = []
        tokens = truncated = 0
        lane = _INTERACTIVE if input_type == "query" else _BULK
        for part in _parts(texts):
            body = {"input": part, "encoding_format": "base64", "input_type": input_type}
            read = partial(_embeddings, len(part))
            some = await self._ask("POST", "/v1/embeddings", read, body, lane)
            vectors.append(some.vectors)
            tokens += some.tokens
            truncated += some.truncated_inputs
        return Embeddings(
            np.concatenate(vectors) if vectors else await self._no_vectors(), tokens, truncated
        )

    async def embed_sparse(self, texts: Sequence[str]) -> list[Mapping[int, float]]:
        """As `Encoder.embed_sparse`, through the server's bulk lane."""
        weights: list[Mapping[int, float]] = []
        for part in _parts(texts):
            read = partial(_term_weights, len(part))
            weights += await self._ask("POST", "/embed_sparse", read, {"inputs": part}, _BULK)
        return weights

    async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores:
        """As `Encoder.rerank`. The query is tokenised once for every 256 texts."""
        scores: list[float] = []
        tokens = truncated = 0
        for part in _parts(texts):
            body = {"query": query, "texts": part}
            some = await self._ask("POST", "/rerank", partial(_rerank_scores, len(part)), body)
            scores += some.scores
            tokens += some.tokens
            truncated += some.truncated_inputs
        return RerankScores(tuple(scores), tokens, truncated)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Encoder.count_tokens`."""
        counts: list[int] = []
        for part in _parts(texts):
            read = partial(_token_counts, len(part))
            counts += await self._ask("POST", "/tokenize", read, {"inputs": part})
        return counts

    async def fingerprint(self) -> str:
        """As `Encoder.fingerprint`; asked anew each time, for the server may change its model."""
        return await self._ask("GET", "/info", _fingerprint)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _no_vectors(self) -> Vectors:
        if self._dimensions is None:
            self._dimensions = await self._ask("GET", "/info", _dimensions)
        return np.zeros((0, self._dimensions), np.float32)

    async def _ask(
        self,
        method: str,
        path: str,
        read: Callable[[httpx.Response], T],
        body: object = None,
        headers: Mapping[str, str] = _INTERACTIVE,
    ) -> T:
        """One call, and what `read` finds in the answer. Raises ConfigError if it finds nothing."""
        reply = await self._call(method, path, body, headers)
        try:
            return read(reply)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            message = f"{self._url}{path}: not a Ragplane server ({describe(error)})"
            raise ConfigError(message) from error

    async def _call(
        self, method: str, path: str, body: object, headers: Mapping[str, str]
    ) -> httpx.Response:
        """One call, asked again while the server is busy, draining or not reachable."""
        for pause_s in _PAUSES_S:
            try:
                return await self._attempt(method, path, body, headers)
            except OverloadedError as error:
                pause_s = max(pause_s, min(error.retry_after_s, _LONGEST_PAUSE_S))
            except UnavailableError as error:
                if isinstance(error.__cause__, httpx.ReadTimeout):  # the next would take as long
                    raise
            await asyncio.sleep(pause_s)
        return await self._attempt(method, path, body, headers)

    async def _attempt(
        self, method: str, path: str, body: object, headers: Mapping[str, str]
    ) -> httpx.Response:
        # Escaped, a lone surrogate reaches the server, which names the input that holds it.
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json", **headers}
        try:
            reply = await self._client.request(method, path, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise UnavailableError(f"{type(error).__name__} {self._url}: {error}") from error
        if reply.is_success:
            return reply
        raise _error(reply, f"{self._url}{path}")


def _parts(texts: Sequence[str]) -> list[list[str]]:
    starts = range(0, len(texts), _TEXTS_PER_CALL)
    return [list(texts[start : start + _TEXTS_PER_CALL]) for start in starts]


def _embeddings(count: int, reply: httpx.Response) -> Embeddings:
    answer = reply.json()
    vectors = np.stack([_vector(answer["data"][index]["embedding"]) for index in range(count)])
    tokens = int(answer["usage"]["total_tokens"])
    return Embeddings(vectors, tokens, int(reply.headers["x-truncated-inputs"]))


def _term_weights(count: int, reply: httpx.Response) -> list[Mapping[int, float]]:
    rows = reply.json()
    return [
        {int(term["index"]): float(term["value"]) for term in rows[index]} for index in range(count)
    ]


def _rerank_scores(count: int, reply: httpx.Response) -> RerankScores:
    by_index = {item["index"]: float(item["score"]) for item in reply.json()}
    scores = tuple(by_index[index] for index in range(count))
    tokens = int(reply.headers["x-compute-tokens"])
    return RerankScores(scores, tokens, int(reply.headers["x-truncated-inputs"]))


def _token_counts(count: int, reply: httpx.Response) -> list[int]:
    rows = reply.json()
    return [len([token["id"] for token in rows[index]]) for index in range(count)]


def _fingerprint(reply: httpx.Response) -> str:
    return str(reply.json()["fingerprint"])


def _dimensions(reply: httpx.Response) -> int:
    kinds = reply.json()["model_type"]
    if "reranker" in kinds and "embedding" not in kinds:
        raise ModelError(f"{reply.url}: no embedding model is served")
    return int(kinds["embedding"]["dimensions"])


def _vector(encoded: str) -> Vectors:
    return np.frombuffer(base64.b64decode(encoded), "<f4").astype(np.float32)


def _error(reply: httpx.Response, url: str) -> RagplaneError:
    """The error that the server raised, as far as its status and envelope tell."""
    message, kind = _envelope(reply)
    text = f"{url}: {reply.status_code} {message}"
    if reply.status_code == 429:
        return OverloadedError(text, retry_after_s=_retry_after_s(reply))
    by_status = _ERRORS.get(reply.status_code, UnavailableError)
    return _ERRORS_BY_TYPE.get(kind, by_status)(text)


def _envelope(reply: httpx.Response) -> tuple[str, str]:
    """Message and kind of error, of the OpenAI or the TEI envelope, or the start of the body."""
    try:
        body: Any = reply.json()
    except ValueError:
        return reply.text[:200], ""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return str(error.get("message")), str(error.get("code"))
    if isinstance(error, str):
        return error, str(body.get("error_type"))
    return reply.text[:200], ""


def _retry_after_s(reply: httpx.Response) -> float:
    try:
        return max(0.0, float(reply.headers.get("retry-after", "1")))
    except ValueError:  # a date, which Ragplane itself never sends
        return 1.0
