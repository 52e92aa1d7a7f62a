"""ONNX graphs of models, exported once and cached by the hash of their weights.

The export runs in a process of its own: torch and transformers cost 400 MB and seconds that a
server with a warm cache does not pay.
"""

from __future__ import annotations

import glob
import shutil
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles, Task
from ragplane.core.process import run_module

OPSET = 17
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# What the output may be called. The first is our own; graphs that models ship have others too.
OUTPUTS: Mapping[Task, tuple[str, ...]] = {
    "states": ("last_hidden_state", "token_embeddings"),
    "logits": ("logits",),
    "sparse": ("sparse",),
}
_EXPORT_TIMEOUT_S = 600


def exported_graph(files: ModelFiles, cache: Path) -> Path:
    """Path of the ONNX graph of `files` below `cache`; exports it when it is not there.

    Inputs `input_ids`, `attention_mask` (and `token_type_ids` where the model has them), int64
    [batch, length]; one float32 output by task: `last_hidden_state` [batch, length, hidden],
    `logits` [batch, labels] or `sparse` [batch, vocabulary]. A model that ships as ONNX alone is
    its own graph. Raises ModelError with the export's own last line, or if a graph that a model
    ships has other inputs and outputs.
    """
    if files.onnx is not None:
        _require_fitting(files.onnx, files.task)
        return files.onnx
    graph = graph_path(files, cache)
    if graph.is_file():
        return graph
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{graph.parent}.lock"):
            if not graph.is_file():
                _export_apart(files, graph)
    except OSError as error:
        raise ModelError(f"model {files.name}: cannot write {cache}: {error}") from error
    return graph


def graph_path(files: ModelFiles, cache: Path) -> Path:
    """Where the graph of `files` is kept, in a folder named after all that shapes it."""
    key = f"{files.name}-{files.weights_sha256()[:16]}-{graph_form(files)}-opset{OPSET}"
    return cache / key / "model.onnx"


def graph_form(files: ModelFiles) -> str:
    """What the graph computes: `states`, `logits`, or `sparse` with its strategy and activation."""
    if files.splade is None:
        return files.task
    return f"{files.task}-{files.splade.strategy}-{files.splade.activation}"


def scratch_prefix(graph: Path) -> str:
    """What folders that are written before `graph` are called, beside the graph's own."""
    return f"{graph.parent.name}.tmp"


def _require_fitting(graph: Path, task: Task) -> None:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        content = onnx.load(str(graph), load_external_data=False).graph
    except DecodeError as error:
        raise ModelError(f"{graph} is not an ONNX graph: {error}") from error
    inputs = {value.name for value in content.input} - {value.name for value in content.initializer}
    outputs = {value.name for value in content.output}
    if not set(INPUTS[:2]) <= inputs or inputs - set(INPUTS):
        raise ModelError(f"{graph} takes {', '.join(sorted(inputs))}, not {', '.join(INPUTS)}")
    if not outputs & set(OUTPUTS[task]):
        wanted = " or ".join(OUTPUTS[task])
        raise ModelError(f"{graph} gives {', '.join(sorted(outputs))}, not {wanted}")


def _export_apart(files: ModelFiles, graph: Path) -> None:
    """Export in another process, in place of what an export that was killed left behind."""
    for stale in graph.parent.parent.glob(f"{glob.escape(scratch_prefix(graph))}*"):
        shutil.rmtree(stale, ignore_errors=True)
    arguments = (str(files.folder), str(graph), graph_form(files))
    try:
        run_module("ragplane.core.onnx_trace", *arguments, timeout_s=_EXPORT_TIMEOUT_S)
    except ModelError as error:
        raise ModelError(f"model {files.name}: export to ONNX failed: {error}") from error
