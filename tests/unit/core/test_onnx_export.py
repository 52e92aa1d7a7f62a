"""Export of a small random BERT, and what an export that fails says."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from ragplane.core.errors import ModelError
from ragplane.core.models import EncoderFiles, read_encoder
from ragplane.core.onnx_export import PARITY_TOLERANCE, exported_graph


def test_exported_graph_equals_the_model_and_is_kept(tmp_path: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
    )
    model = BertModel(config).eval()
    model.save_pretrained(tmp_path / "small")
    files = read_encoder(str(tmp_path / "small"))

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
        want = model(**tensors).last_hidden_state.numpy()
    np.testing.assert_allclose(got[mask > 0], want[mask > 0], atol=PARITY_TOLERANCE)

    written = graph.stat().st_mtime_ns
    assert exported_graph(files, tmp_path / "cache") == graph
    assert graph.stat().st_mtime_ns == written


@pytest.fixture
def files(tmp_path: Path) -> EncoderFiles:
    """A folder whose weights are none."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "config.json").write_text('{"hidden_size": 16}')
    (folder / "model.safetensors").write_bytes(b"not weights")
    return read_encoder(str(folder))


def test_failed_export_gives_its_last_line(
    files: EncoderFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text('#!/bin/sh\necho "Traceback:" >&2\necho "Error: bad header" >&2\nexit 1')
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    with pytest.raises(ModelError, match="export to ONNX failed: Error: bad header"):
        exported_graph(files, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*.onnx"))


def test_cache_that_cannot_be_written_is_named(files: EncoderFiles, tmp_path: Path) -> None:
    cache = tmp_path / "file"
    cache.touch()
    with pytest.raises(ModelError, match=f"cannot write {cache}") as caught:
        exported_graph(files, cache)
    assert isinstance(caught.value.__cause__, OSError)
