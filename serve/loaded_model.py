"""One model in this process: its files, tokenizer, backend and batcher."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Literal

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, LimitError
from ragplane.core.models import Kind, ModelFiles
from ragplane.core.tokens import TextTokenizer
from serve.backends.opened import OpenedBackend
from serve.batching.batcher import Batcher
from serve.batching.queue import Limits
from serve.encoder import InputType
from serve.heads import EmbeddingHead

Ability = Literal["embed", "embed_sparse", "embed_all", "rerank", "predict"]
ABILITIES: Mapping[Kind, frozenset[Ability]] = {
    "embedding": frozenset({"embed", "embed_all"}),
    "sparse": frozenset({"embed_sparse"}),
    "reranker": frozenset({"rerank", "predict"}),
    "classifier": frozenset({"predict"}),
}
_PROMPT_NAMES: dict[InputType, tuple[str, ...]] = {
    "query": ("query",),
    "document": ("document", "passage", "corpus"),
}


class LoadedModel:
    """A model that is ready to run."""

    def __init__(
        self,
        files: ModelFiles,
        opened: OpenedBackend,
        settings: Settings,
        *,
        name: str | None = None,
        is_main: bool = False,
        late_interaction: bool = False,
    ) -> None:
        """`name` is what clients call it, the model's own by default. `is_main` is the embedding
        model of the settings, whose default prompt they may set. With `late_interaction` an
        embedding model also reranks.

        Raises ConfigError if the default prompt of the settings is not one of the model's.
        """
        self.files = files
        self.name = name or files.name
        self.dtype = opened.backend.dtype
        self.backend_name = opened.backend.name
        self.packed = opened.backend.packed
        self.parity = opened.parity
        self.calibration_s = opened.calibration_s
        self.micro_batch_tokens = opened.micro_batch_tokens
        self.abilities = ABILITIES[files.kind] | ({"rerank"} if late_interaction else set())
        self.tokenizer: TextTokenizer = files.tokenizer()
        self.weights_sha256 = files.weights_sha256()
        self.head = EmbeddingHead(files)
        self._default_prompt = _default_prompt(files, settings if is_main else None)
        self._fingerprint = self._hash()
        self.batcher = Batcher(
            opened.backend,
            max_requests=settings.max_concurrent_requests,
            limits=Limits(opened.micro_batch_tokens, settings.max_batch_requests),
            cost=opened.cost,
            speed=opened.speed,
            scheduling=settings.scheduling,
        )

    def fingerprint(self) -> str:
        """16 hex digits over everything that shapes the vector space."""
        return self._fingerprint

    def prompt_named(self, name: str | None) -> str:
        """The text of a prompt; the default one for None. Raises LimitError."""
        if name is None:
            return self._default_prompt
        if name not in self.files.prompts:
            known = ", ".join(sorted(self.files.prompts)) or "none"
            message = f"prompt_name {name!r} is unknown; the model has: {known}"
            raise LimitError(message, param="prompt_name")
        return self.files.prompts[name]

    def prompt_for(self, input_type: InputType) -> str:
        """The model's own prompt for queries or documents, else the default one."""
        names = (name for name in _PROMPT_NAMES[input_type] if name in self.files.prompts)
        return self.prompt_named(next(names, None))

    def _hash(self) -> str:
        files = self.files
        facts = [
            self.weights_sha256,
            files.tokenizer_sha256(),
            self.dtype,
            files.max_tokens,
            files.pooling,
            sorted(files.prompts.items()),
            self._default_prompt,
            files.normalize,
            files.dimensions,
            files.lowercase,
            files.splade and asdict(files.splade),
            [(layer.activation, layer.residual) for layer in files.dense],
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _default_prompt(files: ModelFiles, settings: Settings | None) -> str:
    """That of the settings, else of the model. Only models that embed take prompts."""
    if files.kind not in ("embedding", "sparse"):
        return ""
    name = files.default_prompt_name
    if settings is not None:
        if settings.default_prompt is not None and settings.default_prompt_name is not None:
            raise ConfigError("default_prompt and default_prompt_name exclude each other")
        if settings.default_prompt is not None:
            return settings.default_prompt
        name = settings.default_prompt_name or name
    if name is None:
        return ""
    if name not in files.prompts:
        known = ", ".join(sorted(files.prompts)) or "none"
        raise ConfigError(f"default_prompt_name {name!r}: model {files.name} has: {known}")
    return files.prompts[name]
