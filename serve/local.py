"""The encoder in this process: the seam `Encoder` over loaded models, and their life."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ragplane.core.config import Settings
from ragplane.core.cpu import available_cpus
from serve.batching.work import Terms, Work
from serve.encoder import Embeddings, InputType, RerankScores
from serve.loaded_model import LoadedModel
from serve.loading import Opening, load_models
from serve.preparing import model_input, prepare_inputs
from serve.registry import ModelRegistry
from serve.requests import EmbedRequest, EncodeRequest, RerankRequest
from serve.runs import Runs
from serve.tokenizing import TokenizerPools

_WARM_UP_TEXTS = 64
_QUERY, _DOCUMENT = Terms("interactive"), Terms("bulk")


class LocalEncoder(Runs):
    """`Encoder` over the models of the settings. Safe for many tasks on one event loop."""

    def __init__(self, settings: Settings, models: Sequence[LoadedModel]) -> None:
        """`models` in order of preference; they are closed with this encoder."""
        self.registry = ModelRegistry(models)
        self.tokenizer_threads = settings.tokenization_workers or available_cpus()
        super().__init__(
            TokenizerPools(self.tokenizer_threads), auto_truncate=settings.auto_truncate
        )

    @classmethod
    async def open(cls, settings: Settings, opening: Opening | None = None) -> LocalEncoder:
        """With the models that are `opening`; by default they are opened in this process.

        Raises ModelError, ConfigError.
        """
        opening = opening or Opening(settings, apart=False)
        return cls(settings, await load_models(opening, settings))

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
        return await self.tokenizers.run("bulk", self.registry.any().tokenizer.count_batch, texts)

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
        self.tokenizers.close()
