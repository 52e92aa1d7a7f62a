"""What one request runs on a loaded model: tokenise, batch, reduce."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from ragplane.core.errors import EmptyInputError, LimitError
from ragplane.core.telemetry import tracer
from ragplane.core.tokens import TokenizedText
from serve.batching.work import Done, Terms, Work
from serve.encoder import (
    Embeddings,
    Predictions,
    RerankScores,
    SparseEmbeddings,
    TokenEmbeddings,
    Vectors,
)
from serve.late_interaction import LateInteraction
from serve.loaded_model import LoadedModel
from serve.pooling import activate, check_dimensions, sparse_weights
from serve.preparing import check_text_limit, model_input, prepare_inputs, prepare_pairs
from serve.requests import (
    EmbedRequest,
    EncodeRequest,
    Pair,
    PredictRequest,
    RerankRequest,
    Single,
    Timings,
)
from serve.token_cache import TokenCache
from serve.tokenizing import TokenizerPools

_TOKEN_CACHE_BYTES = 64 << 20
_MOST_TOKEN_VECTORS = 65_536
T = TypeVar("T")


class Runs:
    """The operations on loaded models. Safe for many tasks on one event loop."""

    def __init__(self, tokenizers: TokenizerPools, *, auto_truncate: bool) -> None:
        """`auto_truncate` is for requests that do not say whether long texts are cut."""
        self.tokenizers = tokenizers
        self._auto_truncate = auto_truncate
        self._token_cache = TokenCache(_TOKEN_CACHE_BYTES)

    async def run_embed(
        self, model: LoadedModel, request: EmbedRequest
    ) -> tuple[Embeddings, Timings]:
        """Embed the inputs of one request; no inputs give no vectors.

        This and the other runs raise any error of `Encoder`, DeadlineError and InputError.
        """
        wanted = request.dimensions
        check_dimensions(wanted, model.files.dimensions)
        reduce = partial(model.head.finish, dimensions=wanted, normalize=request.normalize)
        texts, done, timings = await self._encode(model, request, reduce, pooled=True)
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
        """One vector for each token of the inputs of one request, as the model gives them.

        Raises LimitError for more tokens than an answer may hold.
        """
        texts, done, timings = await self._encode(
            model, request, Vectors.copy, most_tokens=_MOST_TOKEN_VECTORS
        )
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

        def prepare(inputs: Sequence[Single | Pair], first: int) -> list[TokenizedText]:
            one = partial(prepare_inputs, model, truncate=truncate, direction=request.direction)
            two = partial(prepare_pairs, model, truncate=truncate, direction=request.direction)
            prepared = (
                one(item, position, param="inputs") if len(item) == 1 else two(item[0], [item[1]])
                for position, item in enumerate(inputs, first)
            )
            return [text for texts in prepared for text in texts]

        with model.batcher.admit(request.terms):
            terms = request.terms
            texts, timings = await self.tokenizers.tokenize(terms, prepare, request.inputs)
            done = await _run(model, _works(texts, Vectors.copy), request.terms)
        scores = _scores(model, done, raw=request.raw_scores)
        return Predictions(scores, _tokens(texts), _cut(texts)), timings.plus(done)

    async def _encode(
        self,
        model: LoadedModel,
        request: EncodeRequest,
        reduce: Callable[[Vectors], T],
        *,
        pooled: bool = False,
        most_tokens: int | None = None,
    ) -> tuple[list[TokenizedText], list[Done[T]], Timings]:
        prepare = partial(
            prepare_inputs,
            model,
            prompt=request.prompt,
            truncate=self._truncates(request.truncate),
            direction=request.direction,
        )
        with model.batcher.admit(request.terms):
            terms = request.terms
            characters = sum(len(request.prompt) + len(item) for item in request.inputs)
            texts, timings = await self.tokenizers.tokenize(
                terms, prepare, request.inputs, characters=characters
            )
            if most_tokens is not None and _tokens(texts) > most_tokens:
                message = f"the inputs have {_tokens(texts)} tokens, and {most_tokens} are allowed"
                raise LimitError(message, param="inputs")
            done = await _run(model, _works(texts, reduce, pooled=pooled), request.terms)
        return texts, done, timings.plus(done)

    async def _cross_encode(
        self, model: LoadedModel, request: RerankRequest
    ) -> tuple[RerankScores, Timings]:
        def prepare(queries: Sequence[str], _: int) -> list[TokenizedText]:
            return prepare_pairs(
                model,
                queries[0],
                request.texts,
                truncate=self._truncates(request.truncate),
                direction=request.direction,
                max_text_tokens=request.max_text_tokens,
            )

        terms = request.terms
        pairs, timings = await self.tokenizers.tokenize(terms, prepare, [request.query])
        done = await _run(model, _works(pairs, Vectors.copy), request.terms)
        scores = tuple(_scores(model, done, raw=request.raw_scores)[:, 0].tolist())
        return RerankScores(scores, _tokens(pairs), _cut(pairs)), timings.plus(done)

    async def _interact(
        self, model: LoadedModel, request: RerankRequest
    ) -> tuple[RerankScores, Timings]:
        wanted = request.max_text_tokens
        limit = None if wanted is None else wanted + model.tokenizer.special_tokens
        prepare = partial(
            prepare_inputs,
            model,
            truncate=self._truncates(request.truncate),
            direction=request.direction,
        )
        terms, tokenize = request.terms, self.tokenizers.tokenize
        (query,), first = await tokenize(terms, partial(prepare, param="query"), [request.query])
        if all(query.special):
            raise EmptyInputError("the query has no words", param="query")
        prepare = partial(prepare, param="text", max_tokens=limit)
        texts, then = await tokenize(terms, prepare, request.texts)
        interaction = LateInteraction(query, texts, self._token_cache)
        done = await _run(model, interaction.works(), request.terms)
        # Off the loop: MaxSim over many texts from the cache would hold up everybody's answers.
        scores = await self.tokenizers.run(terms.lane, interaction.scores)
        both = [query, *texts]
        timings = Timings(first.tokenization_ms + then.tokenization_ms).plus(done)
        return RerankScores(scores, _tokens(both), _cut(both)), timings

    def _truncates(self, wanted: bool | None) -> bool:
        return self._auto_truncate if wanted is None else wanted


def _works(
    texts: Sequence[TokenizedText], reduce: Callable[[Vectors], T], *, pooled: bool = False
) -> list[Work[T]]:
    return [Work(model_input(text, pooled=pooled), reduce) for text in texts]


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
