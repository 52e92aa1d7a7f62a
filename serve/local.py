"""The encoder in this process: tokenizer threads, a batcher for each model, reductions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np

from ragplane.core.config import Settings
from ragplane.core.errors import EmptyInputError, LimitError, ModelError
from ragplane.core.models import NO_MODEL
from ragplane.core.telemetry import tracer
from ragplane.core.tokens import TokenizedText
from serve.backend import TokenIds
from serve.batching.work import Done, Work
from serve.encoder import Embeddings, InputType, RerankScores, Vectors
from serve.loaded_model import LoadedModel, load
from serve.pooling import check_dimensions, content_rows, max_sim, normalize, pool
from serve.requests import EmbedRequest, RerankRequest, Timings
from serve.token_cache import TokenCache

_WARM_UP_TEXTS = 64
_TOKEN_CACHE_BYTES = 64 << 20
T = TypeVar("T")


class LocalEncoder:
    """`Encoder` over the models of the settings. Safe for many tasks on one event loop."""

    tokenizer_threads = 2

    def __init__(
        self, settings: Settings, embedder: LoadedModel | None, reranker: LoadedModel | None
    ) -> None:
        """`embedder` and `reranker` may be the same model, which then shares one batcher."""
        self.embedder = embedder
        self.reranker = reranker
        self._auto_truncate = settings.auto_truncate
        self._tokenizers = ThreadPoolExecutor(self.tokenizer_threads, "tokenizer")
        self._token_cache = TokenCache(_TOKEN_CACHE_BYTES)

    @classmethod
    async def open(cls, settings: Settings) -> LocalEncoder:
        """Load the models in a thread; the first time, export them. Raises ModelError."""
        names = {settings.embed_model, settings.rerank_model} - {NO_MODEL}
        parts = {name: await asyncio.to_thread(load, name, settings) for name in sorted(names)}
        models = {
            name: await asyncio.to_thread(LoadedModel, *parts[name], settings) for name in parts
        }
        return cls(settings, models.get(settings.embed_model), models.get(settings.rerank_model))

    @property
    def models(self) -> tuple[LoadedModel, ...]:
        """The distinct models that are loaded."""
        loaded = (model for model in (self.embedder, self.reranker) if model is not None)
        return tuple(dict.fromkeys(loaded))

    @property
    def healthy(self) -> bool:
        """False while a model's worker is dead or stuck."""
        return all(model.batcher.healthy for model in self.models)

    @property
    def ready(self) -> bool:
        """False while unhealthy or draining."""
        return all(model.batcher.accepts for model in self.models)

    async def embed(
        self, texts: Sequence[str], *, input_type: InputType = "document"
    ) -> Embeddings:
        """As `Encoder.embed`."""
        prompt = self.require_embedder().prompt_for(input_type)
        embeddings, _ = await self.run_embed(EmbedRequest(texts, prompt))
        return embeddings

    async def embed_sparse(self, texts: Sequence[str]) -> list[Mapping[int, float]]:
        """As `Encoder.embed_sparse`: ModelError, because no served model has a sparse head."""
        name = self.require_embedder().files.name
        raise ModelError(f"model {name}: no sparse head, {len(texts)} texts are not encoded")

    async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores:
        """As `Encoder.rerank`, by late interaction over token vectors."""
        scores, _ = await self.run_rerank(RerankRequest(query, texts))
        return scores

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Encoder.count_tokens`, with the embedding model's tokenizer where there is one."""
        return await self.off_loop(self.any_model().tokenizer.count_batch, texts)

    async def fingerprint(self) -> str:
        """As `Encoder.fingerprint`, of the embedding model."""
        return self.require_embedder().fingerprint()

    async def warm_up(self) -> None:
        """Run a batch on each model, which also gives the first measured speed."""
        texts = [f"{number} warm up" for number in range(_WARM_UP_TEXTS)]
        if self.embedder is not None:
            await self.embed(texts)
        if self.reranker is not None:
            await self.rerank("warm up", texts)

    async def drain(self, timeout_s: float) -> None:
        """Refuse new requests; wait for the open ones, `timeout_s` at most."""
        await asyncio.gather(*(model.batcher.drain(timeout_s) for model in self.models))

    async def aclose(self) -> None:
        """End the threads; what still waits fails with UnavailableError."""
        await asyncio.gather(*(model.batcher.aclose() for model in self.models))
        self._tokenizers.shutdown(wait=False, cancel_futures=True)

    def require_embedder(self) -> LoadedModel:
        """The embedding model. Raises ModelError if none is served."""
        if self.embedder is None:
            raise ModelError("no embedding model is served (embed_model is none)")
        return self.embedder

    def require_reranker(self) -> LoadedModel:
        """The rerank model. Raises ModelError if none is served."""
        if self.reranker is None:
            raise ModelError("no rerank model is served (rerank_model is none)")
        return self.reranker

    def any_model(self) -> LoadedModel:
        """The embedding model, else the rerank model. Raises ModelError if none is served."""
        return self.embedder or self.require_reranker()

    async def run_embed(self, request: EmbedRequest) -> tuple[Embeddings, Timings]:
        """Embed the inputs of one request; no inputs give no vectors.

        Raises any error of `Encoder`, DeadlineError and InputError.
        """
        model = self.require_embedder()
        dimensions, files = request.dimensions, model.files
        check_dimensions(dimensions, files.dimensions)
        unit = files.normalize if request.normalize is None else request.normalize
        with model.batcher.admit():
            prepare = partial(
                model.prepare,
                prompt=request.prompt,
                truncate=self._truncates(request.truncate),
                direction=request.direction,
                param="input",
            )
            texts, timings = await self._tokenize(lambda: prepare(request.inputs))

            def reduce(tokens: Vectors) -> Vectors:
                vector = pool(tokens, files.pooling)[:dimensions]
                return normalize(vector) if unit else vector

            works = [Work(text.ids, reduce) for text in texts]
            done = await _run(model, works, request.deadline_s)
        vectors = np.zeros((len(done), dimensions or files.dimensions), np.float32)
        for row, item in zip(vectors, done, strict=True):
            row[:] = item.value
        return Embeddings(vectors, _tokens(texts), _cut(texts)), timings.plus(done)

    async def run_rerank(self, request: RerankRequest) -> tuple[RerankScores, Timings]:
        """Score the texts of one request, in input order; raises as `run_embed`.

        Every text is encoded by itself, so its score depends on nothing but the query.
        """
        model = self.require_reranker()
        _check_text_limit(request.max_text_tokens, model)
        truncate = self._truncates(request.truncate)

        def prepare() -> list[TokenizedText]:
            cut = partial(model.prepare, truncate=truncate, direction=request.direction)
            (query,) = cut([request.query], param="query")
            if all(query.special):
                raise EmptyInputError("the query has no words", param="query")
            return [query, *cut(request.texts, max_tokens=request.max_text_tokens, param="text")]

        with model.batcher.admit():
            (query, *texts), timings = await self._tokenize(prepare)

            def reduce_query(tokens: Vectors) -> Vectors:
                return normalize(content_rows(tokens, query.special))

            (asked,) = await _run(model, [Work(query.ids, reduce_query)], request.deadline_s)
            score = partial(self._score, asked.value)
            known = [self._known_score(asked.value, text.ids) for text in texts]
            works = [
                Work(text.ids, partial(score, text.ids))
                for text, cached in zip(texts, known, strict=True)
                if cached is None
            ]
            done = await _run(model, works, request.deadline_s)
        fresh = iter(done)
        scores = tuple(next(fresh).value if cached is None else cached for cached in known)
        cost = _tokens([query, *texts])
        return RerankScores(scores, cost, _cut([query, *texts])), timings.plus([asked]).plus(done)

    async def off_loop(self, function: Callable[..., T], *arguments: object) -> T:
        """Run tokenizer work on the tokenizer threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._tokenizers, function, *arguments)

    async def _tokenize(
        self, prepare: Callable[[], list[TokenizedText]]
    ) -> tuple[list[TokenizedText], Timings]:
        started_s = time.perf_counter()
        with tracer.start_as_current_span("tokenize"):
            texts = await self.off_loop(prepare)
        return texts, Timings(tokenization_ms=(time.perf_counter() - started_s) * 1e3)

    def _truncates(self, wanted: bool | None) -> bool:
        return self._auto_truncate if wanted is None else wanted

    def _score(self, query: Vectors, ids: TokenIds, tokens: Vectors) -> float:
        unit = normalize(tokens)
        self._token_cache.put(ids, unit)
        return max_sim(query, unit)

    def _known_score(self, query: Vectors, ids: TokenIds) -> float | None:
        cached = self._token_cache.get(ids)
        return None if cached is None else max_sim(query, cached)


async def _run(
    model: LoadedModel, works: Sequence[Work[T]], deadline_s: float | None
) -> list[Done[T]]:
    """Through the batcher, with the spans `queue` and `inference`."""
    start_ns = time.time_ns()
    done = await model.batcher.run(works, deadline_s=deadline_s)
    times = Timings().plus(done)
    split_ns = start_ns + int(times.queue_ms * 1e6)
    tracer.start_span("queue", start_time=start_ns).end(split_ns)
    end_ns = split_ns + int(times.inference_ms * 1e6)
    tracer.start_span("inference", start_time=split_ns).end(end_ns)
    return done


def _check_text_limit(wanted: int | None, model: LoadedModel) -> None:
    least = model.tokenizer.special_tokens + 1
    if wanted is not None and wanted < least:
        message = f"max_tokens_per_doc must be at least {least}, not {wanted}"
        raise LimitError(message, param="max_tokens_per_doc")


def _tokens(texts: Sequence[TokenizedText]) -> int:
    return sum(len(text.ids) for text in texts)


def _cut(texts: Sequence[TokenizedText]) -> int:
    return sum(text.cut_tokens > 0 for text in texts)
