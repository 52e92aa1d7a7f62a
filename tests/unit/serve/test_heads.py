"""The head of an embedding model, by hand and against torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as torch_save_file

from ragplane.core.errors import ModelError
from ragplane.core.models import BUNDLED, DenseActivation, DenseLayer, read_model
from serve.encoder import Vectors
from serve.heads import EmbeddingHead

FILES = replace(read_model(BUNDLED), hidden_size=6)
RANDOM = np.random.default_rng(0)
STATES = RANDOM.normal(size=(7, 6)).astype(np.float32)
MEAN = STATES.mean(axis=0)
WEIGHT = RANDOM.normal(size=(4, 6)).astype(np.float32)
BIAS = RANDOM.normal(size=4).astype(np.float32)


def test_a_cut_vector_is_normalised_again() -> None:
    vector = EmbeddingHead(FILES).finish(MEAN, dimensions=3)
    np.testing.assert_allclose(vector, MEAN[:3] / np.linalg.norm(MEAN[:3]), atol=1e-6)


def test_token_vectors_are_pooled_first() -> None:
    for pooling, pooled in (("mean", MEAN), ("last-token", STATES[-1])):
        head = EmbeddingHead(replace(FILES, pooling=pooling))
        np.testing.assert_array_equal(head(STATES), head.finish(pooled))


@pytest.mark.parametrize(
    ("own", "asked", "is_unit"), [(True, None, 1), (True, False, 0), (False, True, 1)]
)
def test_normalisation_is_the_model_s_own_unless_asked(
    own: bool, asked: bool | None, is_unit: bool
) -> None:
    vector = EmbeddingHead(replace(FILES, normalize=own)).finish(MEAN, normalize=asked)
    assert (abs(np.linalg.norm(vector) - 1) < 1e-6) == is_unit
    assert vector.dtype == np.float32


@pytest.mark.parametrize("activation", ["identity", "tanh", "relu", "sigmoid"])
def test_dense_layer_equals_torch(activation: DenseActivation, tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    save_file({"linear.weight": WEIGHT, "linear.bias": BIAS}, weights)
    layer = DenseLayer(weights, 4, activation, residual=False)
    head = EmbeddingHead(replace(FILES, dense=(layer,), normalize=False))
    plain = torch.nn.functional.linear(*map(torch.from_numpy, (MEAN, WEIGHT, BIAS)))
    want = plain if activation == "identity" else getattr(torch, activation)(plain)
    np.testing.assert_allclose(head.finish(MEAN), want.numpy(), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_of_any_precision_are_read(dtype: torch.dtype, tmp_path: Path) -> None:
    weight = torch.from_numpy(WEIGHT).to(dtype)
    torch_save_file({"linear.weight": weight}, tmp_path / "model.safetensors")
    layer = DenseLayer(tmp_path / "model.safetensors", 4, "identity", residual=False)
    vector = EmbeddingHead(replace(FILES, dense=(layer,), normalize=False)).finish(MEAN)
    np.testing.assert_allclose(vector, weight.float().numpy() @ MEAN, atol=1e-6)


@pytest.mark.parametrize("outputs", [4, 6])
def test_residual_layer_adds_its_input(outputs: int, tmp_path: Path) -> None:
    tensors = {"linear.weight": np.zeros((outputs, 6), np.float32)}
    if outputs == 4:
        tensors["residual.weight"] = WEIGHT
    save_file(tensors, tmp_path / "model.safetensors")
    layer = DenseLayer(tmp_path / "model.safetensors", outputs, "tanh", residual=True)
    head = EmbeddingHead(replace(FILES, dense=(layer,), normalize=False))
    np.testing.assert_allclose(
        head.finish(MEAN), WEIGHT @ MEAN if outputs == 4 else MEAN, atol=1e-6
    )


@pytest.mark.parametrize(
    ("tensors", "outputs"),
    [(None, 4), ({"other": WEIGHT}, 4), ({"linear.weight": WEIGHT}, 5)],
)
def test_weights_that_do_not_fit_are_named(
    tensors: dict[str, Vectors] | None, outputs: int, tmp_path: Path
) -> None:
    weights = tmp_path / "model.safetensors"
    if tensors is None:
        weights.write_bytes(b"no tensors")
    else:
        save_file(tensors, weights)
    layer = DenseLayer(weights, outputs, "tanh", residual=False)
    with pytest.raises(ModelError, match=f"dense layer {weights}"):
        EmbeddingHead(replace(FILES, dense=(layer,)))
