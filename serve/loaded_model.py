"""One encoder model in this process: its files, tokenizer, backend and batcher."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from ragplane.core.config import Settings
from ragplane.core.cpu import available_cpus
from ragplane.core.errors import EmptyInputError, LimitError
from ragplane.core.models import EncoderFiles, read_encoder
from ragplane.core.onnx_export import exported_graph
from ragplane.core.tokens import TextTokenizer, TokenizedText, TruncationDirection
from serve.backend import Backend, TokenIds
from serve.batching.batcher import Batcher
from serve.encoder import InputType
from serve.onnx_backend import OnnxBackend

_PROMPT_NAMES: dict[InputType, tuple[str, ...]] = {
    "query": ("query",),
    "document": ("document", "passage", "corpus"),
}


class LoadedModel:
    """A model that is ready to run."""

    def __init__(self, files: EncoderFiles, backend: Backend, settings: Settings) -> None:
        self.files = files
        self.dtype = backend.dtype
        self.tokenizer: TextTokenizer = files.tokenizer()
        self.weights_sha256 = files.weights_sha256()
        self.batcher = Batcher(
            backend,
            max_requests=settings.max_concurrent_requests,
            budget_tokens=budget_tokens(settings),
        )

    def fingerprint(self) -> str:
        """16 hex digits over everything that shapes the vector space."""
        files = self.files
        facts = [
            self.weights_sha256,
            self.dtype,
            files.pooling,
            sorted(files.prompts.items()),
            files.default_prompt_name,
            files.normalize,
            files.dimensions,
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    def prompt_named(self, name: str | None) -> str:
        """The text of a prompt; of the model's default one for None. Raises LimitError."""
        name = self.files.default_prompt_name if name is None else name
        if name is None:
            return ""
        if name not in self.files.prompts:
            known = ", ".join(sorted(self.files.prompts)) or "none"
            message = f"prompt_name {name!r} is unknown; the model has: {known}"
            raise LimitError(message, param="prompt_name")
        return self.files.prompts[name]

    def prompt_for(self, input_type: InputType) -> str:
        """The model's own prompt for queries or documents, else its default prompt."""
        names = (name for name in _PROMPT_NAMES[input_type] if name in self.files.prompts)
        return self.prompt_named(next(names, None))

    def prepare(
        self,
        inputs: Sequence[str | TokenIds],
        *,
        prompt: str = "",
        truncate: bool,
        direction: TruncationDirection = "right",
        max_tokens: int | None = None,
        param: str,
    ) -> list[TokenizedText]:
        """Token ids of each input, cut to the model's limit or `max_tokens`; token ids stay as they
        are. `param` names the inputs in errors.

        Raises EmptyInputError, TokenizerError, or LimitError: ids outside the vocabulary, or too
        long for the model with `truncate` off.
        """
        for position, item in enumerate(inputs):
            self._check(item, _name(inputs, position, param), param)
        limit = min(self.files.max_tokens, max_tokens or self.files.max_tokens)
        texts = [prompt + item for item in inputs if isinstance(item, str)]
        encoded = iter(self.tokenizer.encode(texts, max_tokens=limit, direction=direction))
        prepared = [
            next(encoded) if isinstance(item, str) else _cut_ids(item, limit, direction)
            for item in inputs
        ]
        if not truncate:
            self._require_uncut(prepared, param)
        return prepared

    def _check(self, item: str | TokenIds, where: str, param: str) -> None:
        if not item:
            raise EmptyInputError(f"{where} is empty", param=param)
        if isinstance(item, str):
            return
        vocabulary = self.tokenizer.vocabulary_size
        if min(item) < 0 or max(item) >= vocabulary:
            message = f"{where} holds a token id outside 0 to {vocabulary - 1}"
            raise LimitError(message, param=param)

    def _require_uncut(self, prepared: Sequence[TokenizedText], param: str) -> None:
        limit = self.files.max_tokens
        for position, text in enumerate(prepared):
            tokens = len(text.ids) + text.cut_tokens
            if tokens > limit:
                name = _name(prepared, position, param)
                message = f"{name} has {tokens} tokens, and the model takes {limit}"
                raise LimitError(message, param=param)


def load(model: str, settings: Settings) -> tuple[EncoderFiles, Backend]:
    """Read, export if need be, and open a model. Takes seconds. Raises ModelError."""
    files = read_encoder(model)
    graph = exported_graph(files, settings.home_path / "models")
    return files, OnnxBackend(graph, threads=settings.threads or available_cpus())


def _name(inputs: Sequence[object], position: int, param: str) -> str:
    return f"the {param}" if len(inputs) == 1 else f"{param} {position}"


def _cut_ids(ids: TokenIds, limit: int, direction: TruncationDirection) -> TokenizedText:
    kept = ids[:limit] if direction == "right" else ids[-limit:]
    return TokenizedText(kept, (False,) * len(kept), len(ids) - len(kept))


def budget_tokens(settings: Settings) -> int:
    """Padded tokens of one micro-batch."""
    return min(settings.micro_batch_tokens, settings.max_batch_tokens)
