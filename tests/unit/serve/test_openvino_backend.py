"""The OpenVINO backend, against PyTorch in float32."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ragplane.core.errors import ModelError
from ragplane.core.models import Task, read_model
from ragplane.core.onnx_export import exported_graph
from serve.backends.base import ModelInput
from serve.backends.openvino import OpenVinoBackend
from serve.backends.torch_model import open_torch
from tests.unit.serve.families import save_bert, write_splade_files

LENGTHS = (7, 40, 3, 12, 12, 1)


def random_inputs(vocabulary: int) -> list[ModelInput]:
    random = np.random.default_rng(0)
    rows = [tuple(random.integers(6, vocabulary, length).tolist()) for length in LENGTHS]
    return [ModelInput(row, len(row) // 2 if len(row) > 2 else None) for row in rows]


@pytest.mark.parametrize("task", ["states", "logits", "sparse"])
def test_outputs_equal_torch(task: Task, tmp_path: Path, model_home: Path) -> None:
    pytest.importorskip("openvino")
    folder = save_bert(tmp_path / "tiny-bert", task=task, labels=2)
    files = read_model(str(write_splade_files(folder) if task == "sparse" else folder))
    graph = exported_graph(files, model_home / "models" / "families")
    backend = OpenVinoBackend(graph, files, dtype="float32", threads=2)
    inputs = random_inputs(54)
    torch = open_torch(files, dtype="float32", threads=2, device="cpu", cache=model_home)
    want = torch.forward(inputs)
    for one, other in zip(backend.forward(inputs), want, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_bfloat16_on_the_real_model_is_exact_enough(model_home: Path) -> None:
    pytest.importorskip("openvino")
    files = read_model("bundled")
    graph = exported_graph(files, model_home / "models" / "families")
    backend = OpenVinoBackend(graph, files, dtype="bfloat16", threads=2)
    inputs = random_inputs(30_000)
    torch = open_torch(files, dtype="float32", threads=2, device="cpu", cache=model_home)
    want = torch.forward(inputs)
    kept = backend.forward(inputs)
    backend.forward(inputs[::-1])  # must not change what was given before
    for got, expected in zip(kept, want, strict=True):
        one, other = got.mean(0), expected.mean(0)
        assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) >= 0.9999


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ModelError, match=r"ragplane\[openvino\]"):
        OpenVinoBackend(Path("graph.onnx"), read_model("bundled"), dtype="float32", threads=1)


def test_a_broken_graph_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    graph = tmp_path / "graph.onnx"
    graph.write_bytes(b"not a graph")
    with pytest.raises(ModelError, match="all-MiniLM"):
        OpenVinoBackend(graph, read_model("bundled"), dtype="float32", threads=1)


def test_importing_openvino_reports_nothing() -> None:
    pytest.importorskip("openvino")
    program = (
        "import sys; from serve.backends.openvino import _import_openvino; _import_openvino(); "
        "print([name for name in sys.modules if name.startswith('openvino_telemetry.')])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
