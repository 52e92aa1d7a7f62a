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
from ragplane.core.cpu import available_cpus
from ragplane.core.errors import EmptyInputError
from ragplane.core.telemetry import tracer
from ragplane.core.tokens import TokenizedText
from serve.batching.work import Done, Terms, Work
from serve.encoder import (
    Embeddings,
    InputType,
    Predictions,
    RerankScores,
    SparseEmbeddings,
    TokenEmbeddings,
    Vectors,
)
from serve.late_interaction import LateInteraction
from serve.loaded_model import LoadedModel
from serve.loading import load_models
from serve.pooling import activate, check_dimensions, sparse_weights
from serve.preparing import check_text_limit, model_input, prepare_inputs, prepare_pairs
from serve.registry import ModelRegistry
from serve.requests import EmbedRequest, EncodeRequest, PredictRequest, RerankRequest, Timings
from serve.token_cache import TokenCache

_WARM_UP_TEXTS = 64
_TOKEN_CACHE_BYTES = 64 << 20
_QUERY, _DOCUMENT = Terms("interactive"), Terms("bulk")
T = TypeVar("T")


class LocalEncoder:
    """`Encoder` over the models of the settings. Safe for many tasks on one event loop."""

    def __init__(self, settings: Settings, models: Sequence[LoadedModel]) -> None:
        """`models` in order of preference; they are closed with this encoder."""
        self.registry = ModelRegistry(models)
        self.tokenizer_threads = settings.tokenization_workers or available_cpus()
        self._auto_truncate = settings.auto_truncate
        self._tokenizers = ThreadPoolExecutor(self.tokenizer_threads, "tokenizer")
        self._token_cache = TokenCache(_TOKEN_CACHE_BYTES)

    @classmethod
    async def open(cls, settings: Settings) -> LocalEncoder:
        """Load the models in a thread; the first time, export and calibrate them.

        Raises ModelError, ConfigError.
        """
        return cls(settings, await load_models(settings))

    @property
    def models(self) -> tuple[LoadedModel, ...]:
        """The models that are loaded."""
        return self.registry.models

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
        """As `Encoder.embed`. Documents take the bulk lane."""
        model = self.registry.pick("embed")
        terms = _QUERY if input_type == "query" else _DOCUMENT
        prompt = model.prompt_for(input_type)
        result, _ = await self.run_embed(
            model, EmbedRequest(inputs=texts, prompt=prompt, terms=terms)
        )
        return result

    async def embed_sparse(self, texts: Sequence[str]) -> list[Mapping[int, float]]:
        """As `Encoder.embed_sparse`."""
        model = self.registry.pick("embed_sparse")
        prompt = model.prompt_for("document")
        result, _ = await self.run_embed_sparse(
            model, EncodeRequest(inputs=texts, prompt=prompt, terms=_DOCUMENT)
        )
        return list(result.weights)

    async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores:
        """As `Encoder.rerank`."""
        model = self.registry.pick("rerank")
        result, _ = await self.run_rerank(model, RerankRequest(query=query, texts=texts))
        return result

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Encoder.count_tokens`, with the first model's tokenizer."""
        return await self.off_loop(self.registry.any().tokenizer.count_batch, texts)

    async def fingerprint(self) -> str:
        """As `Encoder.fingerprint`, of the embedding model."""
        return self.registry.pick("embed").fingerprint()

    async def warm_up(self) -> None:
        """Run a batch through each model, tokenizer and all."""
        for model in self.models:
            texts = prepare_inputs(model, [f"{n} warm up" for n in range(_WARM_UP_TEXTS)])
            works = [Work(model_input(text), lambda _: None) for text in texts]
            with model.batcher.admit():
                await model.batcher.run(works)

    async def drain(self, timeout_s: float) -> None:
        """Refuse new requests; wait for the open ones, `timeout_s` at most."""
        await asyncio.gather(*(model.batcher.drain(timeout_s) for model in self.models))

    async def aclose(self) -> None:
        """End the threads; what still waits fails with UnavailableError."""
        await asyncio.gather(*(model.batcher.aclose() for model in self.models))
        self._tokenizers.shutdown(wait=False, cancel_futures=True)

    async def run_embed(
        self, model: LoadedModel, request: EmbedRequest
    ) -> tuple[Embeddings, Timings]:
        """Embed the inputs of one request; no inputs give no vectors.

        This and the other runs raise any error of `Encoder`, DeadlineError and InputError.
        """
        wanted = request.dimensions
        check_dimensions(wanted, model.files.dimensions)
        reduce = partial(model.head, dimensions=wanted, normalize=request.normalize)
        texts, done, timings = await self._encode(model, request, reduce)
        vectors = np.zeros((len(done), wanted or model.files.dimensions), np.float32)
        for row, item in zip(vectors, done, strict=True):
            row[:] = item.value
        return Embeddings(vectors, _tokens(texts), _cut(texts)), timings

    async def run_embed_sparse(
        self, model: LoadedModel, request: EncodeRequest
    ) -> tuple[SparseEmbeddings, Timings]:
        """Term weights of the inputs of one request."""
        texts, done, timings = await self._encode(model, request, sparse_weights)
        weights = tuple(item.value for item in done)
        return SparseEmbeddings(weights, _tokens(texts), _cut(texts)), timings

    async def run_embed_all(
        self, model: LoadedModel, request: EncodeRequest
    ) -> tuple[TokenEmbeddings, Timings]:
        """One vector for each token of the inputs of one request, as the model gives them."""
        texts, done, timings = await self._encode(model, request, Vectors.copy)
        vectors = tuple(item.value for item in done)
        return TokenEmbeddings(vectors, _tokens(texts), _cut(texts)), timings

    async def run_rerank(
        self, model: LoadedModel, request: RerankRequest
    ) -> tuple[RerankScores, Timings]:
        """Score the texts of one request, in input order."""
        check_text_limit(request.max_text_tokens)
        with model.batcher.admit(request.terms):
            if model.files.task == "logits":
                return await self._cross_encode(model, request)
            return await self._interact(model, request)

    async def run_predict(
        self, model: LoadedModel, request: PredictRequest
    ) -> tuple[Predictions, Timings]:
        """Label scores of the inputs of one request."""
        truncate = self._truncates(request.truncate)

        def prepare() -> list[TokenizedText]:
            one = partial(prepare_inputs, model, truncate=truncate, direction=request.direction)
            two = partial(prepare_pairs, model, truncate=truncate, direction=request.direction)
            prepared = (
                one(item, param="inputs") if len(item) == 1 else two(item[0], [item[1]])
                for item in request.inputs
            )
            return [text for texts in prepared for text in texts]

        with model.batcher.admit(request.terms):
            texts, timings = await self._tokenize(prepare)
            done = await _run(model, _works(texts, Vectors.copy), request.terms)
        scores = _scores(model, done, raw=request.raw_scores)
        return Predictions(scores, _tokens(texts), _cut(texts)), timings.plus(done)

    async def off_loop(self, function: Callable[..., T], *arguments: object) -> T:
        """Run tokenizer work on the tokenizer threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._tokenizers, function, *arguments)

    async def _encode(
        self, model: LoadedModel, request: EncodeRequest, reduce: Callable[[Vectors], T]
    ) -> tuple[list[TokenizedText], list[Done[T]], Timings]:
        prepare = partial(
            prepare_inputs,
            model,
            request.inputs,
            prompt=request.prompt,
            truncate=self._truncates(request.truncate),
            direction=request.direction,
        )
        with model.batcher.admit(request.terms):
            texts, timings = await self._tokenize(prepare)
            done = await _run(model, _works(texts, reduce), request.terms)
        return texts, done, timings.plus(done)

    async def _cross_encode(
        self, model: LoadedModel, request: RerankRequest
    ) -> tuple[RerankScores, Timings]:
        prepare = partial(
            prepare_pairs,
            model,
            request.query,
            request.texts,
            truncate=self._truncates(request.truncate),
            direction=request.direction,
            max_text_tokens=request.max_text_tokens,
        )
        pairs, timings = await self._tokenize(prepare)
        done = await _run(model, _works(pairs, Vectors.copy), request.terms)
        scores = tuple(_scores(model, done, raw=request.raw_scores)[:, 0].tolist())
        return RerankScores(scores, _tokens(pairs), _cut(pairs)), timings.plus(done)

    async def _interact(
        self, model: LoadedModel, request: RerankRequest
    ) -> tuple[RerankScores, Timings]:
        wanted, special = request.max_text_tokens, model.tokenizer.special_tokens

        def prepare() -> list[TokenizedText]:
            cut = partial(
                prepare_inputs,
                model,
                truncate=self._truncates(request.truncate),
                direction=request.direction,
            )
            (query,) = cut([request.query], param="query")
            if all(query.special):
                raise EmptyInputError("the query has no words", param="query")
            limit = None if wanted is None else wanted + special
            return [query, *cut(request.texts, max_tokens=limit, param="text")]

        (query, *texts), timings = await self._tokenize(prepare)
        interaction = LateInteraction(query, texts, self._token_cache)
        done = await _run(model, interaction.works(), request.terms)
        cost = _tokens([query, *texts])
        scores = RerankScores(interaction.scores(), cost, _cut([query, *texts]))
        return scores, timings.plus(done)

    async def _tokenize(
        self, prepare: Callable[[], list[TokenizedText]]
    ) -> tuple[list[TokenizedText], Timings]:
        started_s = time.perf_counter()
        with tracer.start_as_current_span("tokenize"):
            texts = await self.off_loop(prepare)
        return texts, Timings(tokenization_ms=(time.perf_counter() - started_s) * 1e3)

    def _truncates(self, wanted: bool | None) -> bool:
        return self._auto_truncate if wanted is None else wanted


def _works(texts: Sequence[TokenizedText], reduce: Callable[[Vectors], T]) -> list[Work[T]]:
    return [Work(model_input(text), reduce) for text in texts]


async def _run(model: LoadedModel, works: Sequence[Work[T]], terms: Terms) -> list[Done[T]]:
    """Through the batcher, with the spans `queue` and `inference`."""
    start_ns = time.time_ns()
    done = await model.batcher.run(works, terms)
    times = Timings().plus(done)
    split_ns = start_ns + int(times.queue_ms * 1e6)
    tracer.start_span("queue", start_time=start_ns).end(split_ns)
    end_ns = split_ns + int(times.inference_ms * 1e6)
    tracer.start_span("inference", start_time=split_ns).end(end_ns)
    return done


def _scores(model: LoadedModel, done: Sequence[Done[Vectors]], *, raw: bool) -> Vectors:
    """Logits or, as the model says, activated scores, float32 [n, labels]."""
    logits = np.zeros((len(done), len(model.files.labels)), np.float32)
    for row, item in zip(logits, done, strict=True):
        row[:] = item.value
    return logits if raw else activate(logits, model.files.activation)


def _tokens(texts: Sequence[TokenizedText]) -> int:
    return sum(len(text.ids) for text in texts)


def _cut(texts: Sequence[TokenizedText]) -> int:
    return sum(text.cut_tokens > 0 for text in texts)
