"""Finding models, what kind they are, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragplane.core.config import PoolingName
from ragplane.core.errors import ModelError
from ragplane.core.models import BUNDLED, SpladeHead, locate, read_model
from tests.unit.core.model_folders import MODULES, make_model, write_json

CLASSIFIER = {"architectures": ["BertForSequenceClassification"]}


def test_bundled_model_is_found_and_read() -> None:
    files = read_model(BUNDLED)
    assert (files.name, files.kind, files.task) == ("all-MiniLM-L6-v2", "embedding", "states")
    assert (files.dimensions, files.max_tokens, files.pad_id) == (384, 256, 0)
    assert (files.pooling, files.normalize, files.dense) == ("mean", True, ())
    assert files.tokenizer().count("hello") == 3


def test_plain_folder_is_read_with_mean_pooling_and_normalised(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    files = read_model(str(folder))
    assert (files.name, files.folder) == ("little-model", folder.resolve())
    assert (files.dimensions, files.max_tokens, files.vocabulary_size) == (8, 64, 100)
    assert (files.pooling, files.normalize) == ("mean", True)
    assert (dict(files.prompts), files.default_prompt_name) == ({}, None)


def test_sentence_transformers_files_rule(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    write_json(folder / "modules.json", MODULES[:2])
    write_json(folder / "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 32})
    said = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    write_json(folder / "config_sentence_transformers.json", said)
    files = read_model(str(folder))
    assert (files.pooling, files.normalize, files.max_tokens) == ("cls", False, 32)
    assert (dict(files.prompts), files.default_prompt_name) == ({"query": "query: "}, "query")


def test_pooling_can_be_overridden(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    write_json(folder / "modules.json", MODULES[:2])
    write_json(folder / "1_Pooling/config.json", {"pooling_mode": "mean"})
    files = read_model(str(folder), pooling="last-token")
    assert (files.pooling, files.normalize, files.kind) == ("last-token", False, "embedding")


@pytest.mark.parametrize(
    ("config", "kind", "labels"),
    [
        ({"id2label": {"0": "LABEL_0"}}, "reranker", ("LABEL_0",)),
        ({}, "classifier", ("LABEL_0", "LABEL_1")),
        ({"id2label": {"10": "c", "2": "b", "1": "a"}}, "classifier", ("a", "b", "c")),
    ],
)
def test_classification_heads_are_told_by_their_labels(
    config: dict[str, Any], kind: str, labels: tuple[str, ...], tmp_path: Path
) -> None:
    files = read_model(str(make_model(tmp_path, **CLASSIFIER | config)))
    assert (files.kind, files.task, files.labels) == (kind, "logits", labels)
    assert files.dimensions == len(labels)


def test_encoder_with_pooling_is_no_classifier(tmp_path: Path) -> None:
    folder = make_model(tmp_path, **CLASSIFIER)
    write_json(folder / "modules.json", MODULES)
    files = read_model(str(folder))
    assert (files.kind, files.labels) == ("embedding", ())


def test_splade_is_read_from_modules_or_by_override(tmp_path: Path) -> None:
    folder = make_model(tmp_path, architectures=["BertForMaskedLM"])
    assert read_model(str(folder)).kind == "embedding"
    assert read_model(str(folder), pooling="splade").splade == SpladeHead("max", "relu")
    splade = {"type": "sentence_transformers.sparse_encoder.models.SpladePooling", "path": "1_S"}
    write_json(folder / "modules.json", [MODULES[0], splade])
    config = {"pooling_strategy": "sum", "activation_function": "log1p_relu"}
    write_json(folder / "1_S/config.json", config)
    files = read_model(str(folder))
    assert (files.kind, files.task, files.pooling) == ("sparse", "sparse", "splade")
    assert (files.splade, files.dimensions) == (SpladeHead("sum", "log1p_relu"), 100)
    assert read_model(str(folder), pooling="cls").kind == "embedding"


def test_files_may_lie_in_the_folder_of_the_transformer(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    inner = folder / "0_Transformer"
    inner.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).rename(inner / name)
    write_json(inner / "sentence_roberta_config.json", {"max_seq_length": 9, "do_lower_case": True})
    write_json(folder / "modules.json", [MODULES[0] | {"path": "0_Transformer"}, *MODULES[1:]])
    files = read_model(str(folder))
    assert (files.folder, files.max_tokens, files.lowercase) == (inner.resolve(), 9, True)


def test_hash_follows_weights_and_configuration(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    files = read_model(str(folder))
    first = files.weights_sha256()
    assert files.weights_sha256() == first
    (folder / "model.safetensors").write_bytes(b"other weights")
    second = files.weights_sha256()
    write_json(folder / "config.json", {"hidden_size": 9})
    assert len({first, second, files.weights_sha256()}) == 3


def test_weights_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_model(tmp_path)
    files, again = read_model(str(folder)), read_model(str(folder), pooling="cls")
    first = files.weights_sha256()
    monkeypatch.setattr(Path, "open", pytest.fail)
    assert again.weights_sha256() == first


def test_onnx_is_read_where_there_are_no_safetensors(tmp_path: Path) -> None:
    folder = make_model(tmp_path, weights=None)
    (folder / "onnx").mkdir()
    graph = folder.resolve() / "onnx/model.onnx"
    graph.write_bytes(b"graph")
    files = read_model(str(folder))
    assert files.onnx == graph
    first = files.weights_sha256()
    (folder / "onnx/model.onnx_data").write_bytes(b"large tensors")
    assert files.weights_sha256() != first
    (folder / "model.safetensors").write_bytes(b"weights")
    assert read_model(str(folder)).onnx is None


def test_pickle_checkpoint_is_refused_by_name(tmp_path: Path) -> None:
    """Behaviour 31."""
    folder = make_model(tmp_path, weights="pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin is a pickle"):
        read_model(str(folder))


def test_folder_without_weights_is_refused(tmp_path: Path) -> None:
    folder = make_model(tmp_path, weights=None)
    with pytest.raises(ModelError, match="no weights"):
        read_model(str(folder))


def test_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        read_model(str(make_model(tmp_path))).tokenizer()


@pytest.mark.parametrize(
    ("architecture", "pooling", "message"),
    [
        ("BertForSequenceClassification", "cls", "does not apply to a classification head"),
        ("BertModel", "splade", "needs a masked-language-model head"),
    ],
)
def test_override_that_does_not_fit_is_refused(
    architecture: str, pooling: PoolingName, message: str, tmp_path: Path
) -> None:
    folder = make_model(tmp_path, architectures=[architecture])
    with pytest.raises(ModelError, match=f"little-model: .*{message}"):
        read_model(str(folder), pooling=pooling)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("sentence_bert_config.json", {"query_expansion": {"length": 32}}, "query_expansion"),
        ("sentence_bert_config.json", {"modality_config": {"message": {}}}, "message"),
        ("config_sentence_transformers.json", {"default_prompt_name": "q"}, "not among"),
    ],
)
def test_option_that_would_not_be_followed_is_refused(
    file: str, content: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = make_model(tmp_path)
    write_json(folder / file, content)
    with pytest.raises(ModelError, match=message):
        read_model(str(folder))


@pytest.mark.parametrize(
    ("name", "content"),
    [("config.json", "{"), ("config.json", "[]"), ("modules.json", "{}"), ("config.json", "{}")],
)
def test_unreadable_file_is_named(name: str, content: str, tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    (folder / name).write_text(content)
    with pytest.raises(ModelError, match=name):
        read_model(str(folder))


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


@pytest.mark.parametrize(("weights", "asked"), [("model.safetensors", 1), ("README.md", 2)])
def test_hub_is_asked_for_onnx_only_where_it_has_no_safetensors(
    weights: str, asked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns: list[list[str]] = []

    def give(_: str, *, allow_patterns: list[str]) -> str:
        patterns.append(allow_patterns)
        return str(tmp_path)

    (tmp_path / weights).touch()
    monkeypatch.setattr("huggingface_hub.snapshot_download", give)
    assert locate("org/name") == tmp_path
    assert len(patterns) == asked
    assert "onnx/model.onnx" in patterns[-1] or asked == 1
