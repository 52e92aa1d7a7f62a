"""ONNX graphs of encoder models, exported once and cached by the hash of their weights.

The export runs in a process of its own: torch and transformers cost 400 MB and seconds that a
server with a warm cache does not pay. A graph is accepted only if its output equals torch's.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from ragplane.core.errors import ModelError
from ragplane.core.models import EncoderFiles

OPSET = 17
PARITY_TOLERANCE = 1e-4
_EXPORT_TIMEOUT_S = 600


def exported_graph(files: EncoderFiles, cache: Path) -> Path:
    """Path of the ONNX graph of `files` below `cache`; exports it when it is not there.

    Inputs `input_ids`, `attention_mask` (and `token_type_ids` where the model has them), int64
    [batch, length]; output `last_hidden_state`, float32 [batch, length, hidden].
    Raises ModelError with the export's own last line.
    """
    graph = cache / f"{files.name}-{files.weights_sha256()[:16]}-opset{OPSET}.onnx"
    if graph.is_file():
        return graph
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{graph}.lock"):
            if not graph.is_file():
                _export_in_process(files.folder, graph)
    except OSError as error:
        raise ModelError(f"model {files.name}: cannot write {cache}: {error}") from error
    return graph


def _export_in_process(folder: Path, graph: Path) -> None:
    command = [sys.executable, "-m", "ragplane.core.onnx_export", str(folder), str(graph)]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=_EXPORT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"model {folder}: export took over {_EXPORT_TIMEOUT_S} s") from error
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines() or [f"exit status {run.returncode}"]
        raise ModelError(f"model {folder}: export to ONNX failed: {lines[-1]}")


def _export(folder: Path, graph: Path) -> None:
    """Trace the model, fuse its graph, keep the fastest form that equals torch, move into place."""
    import tempfile

    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(
        folder, attn_implementation="eager", use_safetensors=True, dtype=torch.float32
    )
    model.eval()
    with tempfile.TemporaryDirectory(dir=graph.parent) as scratch:
        plain = Path(scratch) / "plain.onnx"
        names = _trace(model, plain)
        fused = Path(scratch) / "fused.onnx"
        _fuse(plain, fused, model.config)
        accepted = next((file for file in (fused, plain) if _equals(file, model, names)), None)
        if accepted is None:
            raise SystemExit("the exported graph does not reproduce the model's output")
        accepted.replace(graph)


def _trace(model: Any, plain: Path) -> list[str]:
    import torch

    names = ["input_ids", "attention_mask"]
    if getattr(model.config, "type_vocab_size", 0) > 1:
        names.append("token_type_ids")

    class LastHiddenState(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            named = dict(zip(names, inputs, strict=True))
            state: torch.Tensor = self.model(**named).last_hidden_state
            return state

    example = tuple(torch.ones(2, 16, dtype=torch.long) for _ in names)
    torch.onnx.export(
        LastHiddenState().eval(),  # export restores the wrapper's mode, and the model's with it
        example,
        str(plain),
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in [*names, "last_hidden_state"]},
        opset_version=OPSET,
        dynamo=False,
    )
    return names


def _fuse(plain: Path, fused: Path, config: Any) -> None:
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    options = FusionOptions("bert")
    # With this fusion the attention nodes lose the mask, and every vector is wrong.
    options.enable_embed_layer_norm = False
    optimized = optimize_model(
        str(plain),
        model_type="bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
        optimization_options=options,
        opt_level=0,
    )
    optimized.save_model_to_file(str(fused))


def _equals(file: Path, model: Any, names: Sequence[str]) -> bool:
    """Whether the graph equals the model on a padded batch, at the positions that count."""
    import numpy as np
    import onnxruntime
    import torch

    random = np.random.default_rng(0)
    ids = random.integers(5, model.config.vocab_size, (3, 24))
    mask = np.ones_like(ids)
    mask[1, 9:] = 0
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    feed = {name: values[name] for name in names}
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    got = session.run(None, feed)[0]
    with torch.no_grad():
        tensors = {name: torch.from_numpy(value) for name, value in feed.items()}
        want = model(**tensors).last_hidden_state.numpy()
    return bool(np.abs(got - want)[mask > 0].max() <= PARITY_TOLERANCE)


if __name__ == "__main__":
    _export(Path(sys.argv[1]), Path(sys.argv[2]))
