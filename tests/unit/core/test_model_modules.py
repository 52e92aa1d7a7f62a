"""modules.json and the folders it names, in all their forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragplane.core.errors import ModelError
from ragplane.core.model_modules import read_modules
from ragplane.core.models import DenseLayer, read_model
from tests.unit.core.model_folders import MODULES, make_model, write_json

DENSE = {"type": "sentence_transformers.base.modules.dense.Dense", "path": "2_Dense"}


@pytest.mark.parametrize(
    ("pooling", "want"),
    [
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": ["lasttoken"]}, "last-token"),
        ({"pooling_mode_lasttoken": True}, "last-token"),
        ({"pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": False}, "max"),
        ({"pooling_mode_weightedmean_tokens": True}, "weighted-mean"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean-sqrt-length"),
        ({}, "mean"),
    ],
)
def test_pooling_is_read_in_every_form(pooling: dict[str, Any], want: str, tmp_path: Path) -> None:
    write_json(tmp_path / "modules.json", MODULES)
    write_json(tmp_path / "1_Pooling/config.json", pooling)
    modules = read_modules(tmp_path)
    assert (modules.pooling, modules.normalize, modules.folder) == (want, True, tmp_path)


def test_dense_layers_are_read_and_hashed(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    write_json(folder / "modules.json", [*MODULES[:2], DENSE])
    layer = {"in_features": 8, "out_features": 3, "activation_function": "torch.nn.modules.ReLU"}
    write_json(folder / "2_Dense/config.json", layer)
    weights = folder.resolve() / "2_Dense/model.safetensors"
    weights.write_bytes(b"dense")
    files = read_model(str(folder))
    assert (files.dimensions, files.normalize) == (3, False)
    assert files.dense == (DenseLayer(weights, 3, "relu", residual=False),)
    first = files.weights_sha256()
    weights.write_bytes(b"others")
    assert files.weights_sha256() != first


@pytest.mark.parametrize(
    ("pooling", "named"),
    [
        ({"pooling_mode": ["mean", "cls"]}, r"mean\+cls"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "cls_token"),
        ({"pooling_mode": "attention"}, "attention"),
        ({"pooling_mode": "mean", "include_prompt": False}, "include_prompt"),
    ],
)
def test_unsupported_pooling_is_refused(
    pooling: dict[str, Any], named: str, tmp_path: Path
) -> None:
    write_json(tmp_path / "modules.json", MODULES)
    write_json(tmp_path / "1_Pooling/config.json", pooling)
    with pytest.raises(ModelError, match=f"pooling .*{named}"):
        read_modules(tmp_path)


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ([MODULES[0], {"type": "own_code.Pooling", "path": ""}], r"module own_code\.Pooling"),
        ([*MODULES, {"type": "sentence_transformers.models.CNN", "path": "3"}], "module .*CNN"),
        ([*MODULES, DENSE], "order Transformer, Pooling, Normalize, Dense"),
        ([MODULES[0], DENSE], "order Transformer, Dense"),
    ],
)
def test_unsupported_modules_are_refused(
    modules: list[dict[str, str]], message: str, tmp_path: Path
) -> None:
    write_json(tmp_path / "modules.json", modules)
    with pytest.raises(ModelError, match=message):
        read_modules(tmp_path)


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        ({"activation_function": "torch.nn.modules.activation.Mish"}, "Mish"),
        ({"module_input_name": "token_embeddings"}, "module_input_name token_embeddings"),
        ({}, r"pytorch_model\.bin is a pickle"),
    ],
)
def test_unsupported_dense_layer_is_refused(
    dense: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write_json(tmp_path / "modules.json", [*MODULES[:2], DENSE])
    write_json(tmp_path / "2_Dense/config.json", {"in_features": 8, "out_features": 4} | dense)
    (tmp_path / "2_Dense/pytorch_model.bin").touch()
    with pytest.raises(ModelError, match=message):
        read_modules(tmp_path)


@pytest.mark.parametrize("config", [{"pooling_strategy": "mean"}, {"activation_function": "gelu"}])
def test_unsupported_splade_is_refused(config: dict[str, str], tmp_path: Path) -> None:
    splade = {"type": "sentence_transformers.sparse_encoder.models.SpladePooling", "path": "1_S"}
    write_json(tmp_path / "modules.json", [MODULES[0], splade])
    write_json(tmp_path / "1_S/config.json", config)
    with pytest.raises(ModelError, match="SPLADE pooling"):
        read_modules(tmp_path)
