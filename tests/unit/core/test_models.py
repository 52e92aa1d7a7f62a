"""Finding models and reading what their files say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragplane.core.errors import ModelError
from ragplane.core.models import BUNDLED, locate, read_encoder

POOLING = "sentence_transformers.models.Pooling"
MODULES = [
    {"type": "sentence_transformers.models.Transformer", "path": ""},
    {"type": POOLING, "path": "1_Pooling"},
    {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"},
]

MakeModel = Callable[..., Path]


@pytest.fixture
def make_model(tmp_path: Path) -> MakeModel:
    """Lays a model folder out; `files` maps names to JSON values."""

    def make(weights: str | None = "model.safetensors", **config: Any) -> Path:
        folder = tmp_path / "little-model"
        folder.mkdir()
        write_json(
            folder / "config.json",
            {"hidden_size": 8, "max_position_embeddings": 64, "architectures": ["BertModel"]}
            | config,
        )
        if weights is not None:
            (folder / weights).write_bytes(b"weights")
        return folder

    return make


def write_json(file: Path, value: object) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def test_bundled_model_is_found_and_read() -> None:
    files = read_encoder(BUNDLED)
    assert files.name == "all-MiniLM-L6-v2"
    assert (files.dimensions, files.max_tokens) == (384, 256)
    assert (files.pooling, files.normalize) == ("mean", True)
    assert files.tokenizer().count("hello") == 3


def test_plain_folder_is_read_with_mean_pooling_and_normalised(make_model: MakeModel) -> None:
    folder = make_model()
    files = read_encoder(str(folder))
    assert (files.name, files.folder) == ("little-model", folder.resolve())
    assert (files.dimensions, files.max_tokens) == (8, 64)
    assert (files.pooling, files.normalize) == ("mean", True)
    assert (dict(files.prompts), files.default_prompt_name) == ({}, None)


def test_sentence_transformers_files_rule(make_model: MakeModel) -> None:
    folder = make_model()
    write_json(folder / "modules.json", MODULES[:2])
    write_json(folder / "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 32})
    write_json(
        folder / "config_sentence_transformers.json",
        {"prompts": {"query": "query: "}, "default_prompt_name": "query"},
    )
    files = read_encoder(str(folder))
    assert (files.pooling, files.normalize, files.max_tokens) == ("cls", False, 32)
    assert (dict(files.prompts), files.default_prompt_name) == ({"query": "query: "}, "query")


def test_positions_after_the_padding_index_are_not_counted(make_model: MakeModel) -> None:
    folder = make_model(model_type="xlm-roberta", max_position_embeddings=514)
    assert read_encoder(str(folder)).max_tokens == 512


def test_hash_follows_weights_and_configuration(make_model: MakeModel) -> None:
    folder = make_model()
    files = read_encoder(str(folder))
    first = files.weights_sha256()
    assert files.weights_sha256() == first
    (folder / "model.safetensors").write_bytes(b"other weights")
    second = files.weights_sha256()
    write_json(folder / "config.json", {"hidden_size": 9})
    assert len({first, second, files.weights_sha256()}) == 3


def test_pickle_checkpoint_is_refused_by_name(make_model: MakeModel) -> None:
    folder = make_model(weights="pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin is a pickle"):
        read_encoder(str(folder))


def test_folder_without_weights_is_refused(make_model: MakeModel) -> None:
    folder = make_model(weights=None)
    with pytest.raises(ModelError, match="no weights"):
        read_encoder(str(folder))


def test_cross_encoder_is_refused(make_model: MakeModel) -> None:
    folder = make_model(architectures=["BertForSequenceClassification"])
    with pytest.raises(ModelError, match="cross-encoder"):
        read_encoder(str(folder))


@pytest.mark.parametrize(
    ("pooling", "named"),
    [
        ({"pooling_mode_max_tokens": True}, "max_tokens"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "cls_token"),
    ],
)
def test_unsupported_pooling_is_refused(
    pooling: dict[str, bool], named: str, make_model: MakeModel
) -> None:
    folder = make_model()
    write_json(folder / "modules.json", MODULES)
    write_json(folder / "1_Pooling/config.json", pooling)
    with pytest.raises(ModelError, match=f"pooling .*{named}"):
        read_encoder(str(folder))


def test_unsupported_module_is_refused(make_model: MakeModel) -> None:
    folder = make_model()
    dense = {"type": "sentence_transformers.models.Dense", "path": "3_Dense"}
    write_json(folder / "modules.json", [*MODULES, dense])
    with pytest.raises(ModelError, match="module Dense"):
        read_encoder(str(folder))


@pytest.mark.parametrize(
    ("name", "content"),
    [("config.json", "{"), ("config.json", "[]"), ("modules.json", "{}"), ("config.json", "{}")],
)
def test_unreadable_file_is_named(name: str, content: str, make_model: MakeModel) -> None:
    folder = make_model()
    (folder / name).write_text(content)
    with pytest.raises(ModelError, match=name):
        read_encoder(str(folder))


@pytest.mark.parametrize("model", ["/no/such/model", "./nowhere", "~/nowhere-at-all", "a/b/c"])
def test_missing_folder_is_refused_without_asking_the_hub(model: str) -> None:
    with pytest.raises(ModelError, match="no such folder"):
        locate(model)


def test_hub_that_gives_nothing_is_a_model_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(ModelError, match=r"org/name: .*no route to the hub"):
        locate("org/name")
