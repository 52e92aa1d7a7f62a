"""Export of small random models, and what an export that fails says."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles, SpladeHead, read_model
from ragplane.core.onnx_export import exported_graph, graph_path, scratch_prefix
from ragplane.core.onnx_trace import PARITY_TOLERANCE, export
from tests.unit.core.model_folders import make_model
from tests.unit.serve.families import save_bert


def test_exported_graph_equals_the_model_and_is_kept(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModel

    files = read_model(str(save_bert(tmp_path / "small")))

    graph = exported_graph(files, tmp_path / "cache")

    random = np.random.default_rng(1)
    ids = random.integers(0, 50, (4, 11))  # a shape that the export did not see
    mask = np.ones_like(ids)
    mask[2, 5:] = 0
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    [got] = session.run(["last_hidden_state"], feed)
    with torch.no_grad():
        tensors = {name: torch.from_numpy(value) for name, value in feed.items()}
        want = AutoModel.from_pretrained(files.folder)(**tensors).last_hidden_state.numpy()
    np.testing.assert_allclose(got[mask > 0], want[mask > 0], atol=PARITY_TOLERANCE)

    written = graph.stat().st_mtime_ns
    assert exported_graph(files, tmp_path / "cache") == graph
    assert graph.stat().st_mtime_ns == written


@pytest.fixture
def files(tmp_path: Path) -> ModelFiles:
    """A folder whose weights are none."""
    return read_model(str(make_model(tmp_path)))


def test_the_name_of_a_graph_follows_all_that_shapes_it(files: ModelFiles, tmp_path: Path) -> None:
    sparse = replace(files, kind="sparse", splade=SpladeHead())
    forms = [
        files,
        replace(files, kind="reranker"),
        sparse,
        replace(sparse, splade=SpladeHead("sum")),
        replace(sparse, splade=SpladeHead("max", "log1p_relu")),
    ]
    paths = [graph_path(form, tmp_path) for form in forms]
    (files.folder / "model.safetensors").write_bytes(b"other weights")
    assert len({*paths, graph_path(files, tmp_path)}) == len(forms) + 1


def test_failed_export_gives_its_last_line(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text('#!/bin/sh\necho "Traceback:" >&2\necho "Error: bad header" >&2\nexit 1')
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    cache = tmp_path / "cache"
    killed = cache / f"{scratch_prefix(graph_path(files, cache))}abc"
    other = cache / "another-model.tmpabc"
    for folder in (killed, other):
        (folder / "plain").mkdir(parents=True)
    with pytest.raises(ModelError, match="export to ONNX failed: Error: bad header"):
        exported_graph(files, cache)
    assert (killed.exists(), other.exists()) == (False, True)
    assert not list((tmp_path / "cache").rglob("*.onnx"))


def test_cache_that_cannot_be_written_is_named(files: ModelFiles, tmp_path: Path) -> None:
    cache = tmp_path / "file"
    cache.touch()
    with pytest.raises(ModelError, match=f"cannot write {cache}") as caught:
        exported_graph(files, cache)
    assert isinstance(caught.value.__cause__, OSError)


def test_weights_without_the_head_are_refused(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "headless")
    with pytest.raises(ModelError, match=r"the weights lack .*classifier"):
        export(folder, tmp_path / "graph" / "model.onnx", "logits")


def test_graph_that_differs_from_the_model_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragplane.core.onnx_trace.PARITY_TOLERANCE", -1.0)
    folder = save_bert(tmp_path / "small")
    with pytest.raises(ModelError, match="does not reproduce"):
        export(folder, tmp_path / "graph" / "model.onnx", "states")
    assert not (tmp_path / "graph").exists()


def test_large_weights_lie_beside_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragplane.core.onnx_trace._PROTOBUF_LIMIT_BYTES", 0)
    graph = tmp_path / "graph" / "model.onnx"
    export(save_bert(tmp_path / "small"), graph, "states")
    assert len(list(graph.parent.iterdir())) == 2
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    assert session.get_outputs()[0].name == "last_hidden_state"


@pytest.mark.parametrize(
    ("inputs", "output", "message"),
    [
        (("input_ids", "attention_mask"), "pooled", "gives pooled, not last_hidden_state"),
        (("input_ids", "attention_mask", "position_ids"), "last_hidden_state", "position_ids"),
        (("input_ids",), "last_hidden_state", "takes input_ids, not"),
    ],
)
def test_shipped_graph_with_other_ends_is_refused(
    inputs: tuple[str, ...], output: str, message: str, tmp_path: Path
) -> None:
    from onnx import TensorProto, helper, save

    ends = [helper.make_tensor_value_info(name, TensorProto.INT64, [None]) for name in inputs]
    last = helper.make_tensor_value_info(output, TensorProto.INT64, [None])
    node = helper.make_node("Identity", ["input_ids"], [output])
    folder = make_model(tmp_path, weights=None)
    save(helper.make_model(helper.make_graph([node], "g", ends, [last])), folder / "model.onnx")
    with pytest.raises(ModelError, match=message):
        exported_graph(read_model(str(folder)), tmp_path / "cache")


def test_shipped_file_that_is_no_graph_is_refused(tmp_path: Path) -> None:
    folder = make_model(tmp_path, weights=None)
    (folder / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelError, match="is not an ONNX graph"):
        exported_graph(read_model(str(folder)), tmp_path / "cache")
