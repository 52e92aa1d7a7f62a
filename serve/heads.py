"""The head of an embedding model: from token vectors to one vector. Pure numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, deserialize

from ragplane.core.errors import ModelError
from ragplane.core.models import DenseActivation, DenseLayer, ModelFiles
from serve.encoder import Vectors
from serve.pooling import normalize as to_unit_length
from serve.pooling import pool, sigmoid


class EmbeddingHead:
    """Pooling, dense layers and normalisation, as a model's sentence-transformers files say."""

    def __init__(self, files: ModelFiles) -> None:
        """Read the weights of the dense layers. Raises ModelError if they do not fit."""
        self._pooling = files.pooling
        self._normalize = files.normalize
        widths = [files.hidden_size, *(layer.outputs for layer in files.dense)]
        self._layers = [
            _Dense(layer, inputs) for layer, inputs in zip(files.dense, widths, strict=False)
        ]

    def __call__(self, states: Vectors) -> Vectors:
        """The vector of one input, pooled here, from its last hidden state [length, hidden]."""
        return self.finish(pool(states, self._pooling))

    def finish(
        self, vector: Vectors, *, dimensions: int | None = None, normalize: bool | None = None
    ) -> Vectors:
        """The vector [dimensions] of one input, from its pooled vector [hidden].

        `dimensions` cuts (Matryoshka, arXiv 2205.13147) before the length is made 1; `normalize`
        overrides the model's own.
        """
        for layer in self._layers:
            vector = layer(vector)
        vector = vector[:dimensions]
        wanted = self._normalize if normalize is None else normalize
        return to_unit_length(vector) if wanted else vector


class _Dense:
    def __init__(self, layer: DenseLayer, inputs: int) -> None:
        try:
            tensors = _read_tensors(layer.weights)
            self._weight = tensors["linear.weight"]
        except (OSError, SafetensorError, KeyError) as error:
            raise ModelError(f"dense layer {layer.weights}: {error}") from error
        if self._weight.shape != (layer.outputs, inputs):
            wanted = f"{layer.outputs} x {inputs}"
            raise ModelError(f"dense layer {layer.weights}: the weights are not {wanted}")
        self._bias = tensors.get("linear.bias", np.zeros(layer.outputs, np.float32))
        self._activate = _DENSE_ACTIVATIONS[layer.activation]
        self._residual = layer.residual
        self._projection = tensors.get("residual.weight")

    def __call__(self, vector: Vectors) -> Vectors:
        out = self._activate(self._weight @ vector + self._bias)
        if not self._residual:
            return out
        return out + (vector if self._projection is None else self._projection @ vector)


def _read_tensors(file: Path) -> dict[str, Vectors]:
    """All tensors as float32. Numpy has no bfloat16: its bits are the upper half of a float32's."""
    tensors: dict[str, Vectors] = {}
    for name, tensor in deserialize(file.read_bytes()):
        if tensor["dtype"] == "BF16":
            bits = np.frombuffer(tensor["data"], np.uint16).astype(np.uint32) << 16
            values = bits.view(np.float32)
        else:
            values = np.frombuffer(tensor["data"], _DTYPES[tensor["dtype"]]).astype(np.float32)
        tensors[name] = values.reshape(tensor["shape"])
    return tensors


def _identity(values: Vectors) -> Vectors:
    return values


def _relu(values: Vectors) -> Vectors:
    return np.maximum(values, np.float32(0))


def _tanh(values: Vectors) -> Vectors:
    return np.tanh(values)


_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
_DENSE_ACTIVATIONS: Mapping[DenseActivation, Callable[[Vectors], Vectors]] = {
    "identity": _identity,
    "tanh": _tanh,
    "relu": _relu,
    "sigmoid": sigmoid,
}
