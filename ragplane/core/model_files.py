"""What a model on disk is: the facts that its own files state, as data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from ragplane.core.errors import ModelError
from ragplane.core.tokens import TextTokenizer

Task = Literal["states", "logits", "sparse"]
Kind = Literal["embedding", "sparse", "reranker", "classifier"]
Pooling = Literal["cls", "mean", "max", "last-token", "weighted-mean", "mean-sqrt-length", "splade"]
Activation = Literal["sigmoid", "softmax", "identity"]
DenseActivation = Literal["identity", "tanh", "relu", "sigmoid"]

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class DenseLayer:
    """A projection after pooling: activation(W x + b), plus x where it is residual.

    `weights` is a safetensors file with `linear.weight` [outputs, inputs], `linear.bias` where it
    has one, and `residual.weight` where a residual layer changes the width.
    """

    weights: Path
    outputs: int
    activation: DenseActivation
    residual: bool


@dataclass(frozen=True, slots=True)
class SpladeHead:
    """How token logits [length, vocabulary] become term weights [vocabulary].

    The weight of a term is log(1 + relu(logit)), taken twice for `log1p_relu`, over all tokens the
    `max` or the `sum` (SPLADE v2, arXiv 2109.10086; arXiv 2504.14839).
    """

    strategy: Literal["max", "sum"] = "max"
    activation: Literal["relu", "log1p_relu"] = "relu"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model on disk, and its facts as its own files state them.

    `root` is what was located; `folder`, below it or the same, holds config.json, the weights and
    tokenizer.json. `model_type` is config.json's.
    `dimensions` counts what one input gives in the end: the vector after the dense layers, the
    labels, or the vocabulary. `max_tokens` counts special tokens. `prompts` maps names such as
    `query` to a text put in front. `activation` turns logits into scores. `onnx` is the graph of a
    folder that has no safetensors, which only ONNX Runtime can run.
    """

    name: str
    root: Path
    folder: Path
    kind: Kind
    model_type: str
    hidden_size: int
    dimensions: int
    max_tokens: int
    vocabulary_size: int
    pad_id: int
    pooling: Pooling
    dense: tuple[DenseLayer, ...]
    normalize: bool
    splade: SpladeHead | None
    prompts: Mapping[str, str]
    default_prompt_name: str | None
    labels: tuple[str, ...]
    activation: Activation
    lowercase: bool
    onnx: Path | None

    @property
    def task(self) -> Task:
        """What a backend gives for one input: [length, hidden], [labels] or [vocabulary]."""
        return _TASKS[self.kind]

    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer. Raises ModelError if there is no tokenizer.json."""
        return TextTokenizer(self.folder / "tokenizer.json", lowercase=self.lowercase)

    def weights_sha256(self) -> str:
        """Hash over all weights and the configuration that shapes the graph."""
        weights = self.folder.glob("*.safetensors") if self.onnx is None else _with_data(self.onnx)
        dense = (layer.weights for layer in self.dense)
        return _sha256([self.folder / "config.json", *sorted(weights), *dense])

    def tokenizer_sha256(self) -> str:
        """Hash of tokenizer.json."""
        return _sha256([self.folder / "tokenizer.json"])


_TASKS: Mapping[Kind, Task] = {
    "embedding": "states",
    "sparse": "sparse",
    "reranker": "logits",
    "classifier": "logits",
}


def _with_data(onnx: Path) -> list[Path]:
    """The graph and the files beside it that hold its large tensors."""
    return [onnx, *onnx.parent.glob(f"{onnx.name}[._]data")]


def _sha256(files: Iterable[Path]) -> str:
    states = ((file, file.stat()) for file in files)
    try:
        return _read_sha256(tuple((file, one.st_size, one.st_mtime_ns) for file, one in states))
    except OSError as error:
        raise ModelError(f"model files: {error}") from error


@lru_cache(maxsize=64)
def _read_sha256(states: tuple[tuple[Path, int, int], ...]) -> str:
    """Hash over files, read once for each size and time of their last change."""
    digest = hashlib.sha256()
    for file, _, _ in states:
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK_BYTES):
                digest.update(block)
    return digest.hexdigest()
