"""Any model of the transformers library on PyTorch, inputs padded on the right."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification

from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles, SpladeHead, Task
from serve.backends.base import Backend, ModelInput
from serve.backends.padding import pad, token_types
from serve.backends.splade import term_weights
from serve.encoder import Vectors

_MAKERS: Mapping[Task, Any] = {
    "states": AutoModel,
    "logits": AutoModelForSequenceClassification,
    "sparse": AutoModelForMaskedLM,
}


class PaddedTorchBackend(Backend):
    """A transformers model with the head of the task."""

    name = "torch"
    packed = False
    streams = 1

    def __init__(self, files: ModelFiles, *, dtype: str, device: str) -> None:
        """Load the weights (safetensors only). Raises ModelError."""
        self.dtype = dtype
        self._device = device
        self._task = files.task
        self._splade = files.splade or SpladeHead()
        self._pad_id = files.pad_id
        self._model = _load(files, dtype).to(device).eval()
        taken = inspect.signature(self._model.forward).parameters
        types = getattr(self._model.config, "type_vocab_size", None) or 0
        self._with_types = "token_type_ids" in taken and types > 1

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        """As `Backend.forward`. The arrays of one call may share memory."""
        try:
            with torch.inference_mode():
                rows = self._run(inputs)
                return [row.float().cpu().numpy() for row in rows]
        except (RuntimeError, IndexError, MemoryError) as error:
            raise ModelError(f"forward pass of {len(inputs)} inputs: {error}") from error

    def _run(self, inputs: Sequence[ModelInput]) -> list[Tensor]:
        if self._task == "sparse":
            # One input at a time: the logits of a whole batch are vocabulary-wide.
            return [term_weights(self._output([item]).logits[0], self._splade) for item in inputs]
        output = self._output(inputs)
        if self._task == "logits":
            return list(output.logits)
        states = output.last_hidden_state
        return [state[: len(item.ids)] for state, item in zip(states, inputs, strict=True)]

    def _output(self, inputs: Sequence[ModelInput]) -> Any:
        ids, mask = pad(inputs, self._pad_id)
        feed = {"input_ids": ids, "attention_mask": mask}
        if self._with_types:
            feed["token_type_ids"] = token_types(inputs, ids.shape[1])
        return self._model(
            **{name: torch.from_numpy(value).to(self._device) for name, value in feed.items()}
        )


def _load(files: ModelFiles, dtype: str) -> Any:
    try:
        model, loading = _MAKERS[files.task].from_pretrained(
            files.folder,
            dtype=getattr(torch, dtype),
            use_safetensors=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise ModelError(f"model {files.name}: {error}") from error
    # The pooler feeds heads only; many encoders are saved without it.
    unused = "pooler." if files.task == "states" else "\0"
    missing = sorted(key for key in loading["missing_keys"] if unused not in key)
    if missing:
        raise ModelError(f"model {files.name}: the weights lack {missing[0]}")
    # Decoders with a classifier look for the last token that is not padding.
    model.config.pad_token_id = files.pad_id
    model.config.use_cache = False
    return model
