"""Models on ONNX Runtime, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles
from ragplane.core.onnx_export import OUTPUTS
from serve.backends.base import Backend, ModelInput
from serve.backends.padding import graph_inputs, unpadded
from serve.encoder import Vectors

_ORT_ERRORS = (
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.NoSuchFile,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
)


class OnnxBackend(Backend):
    """One session over a model's graph, float32."""

    name = "onnxruntime"
    dtype = "float32"
    packed = False
    streams = 1

    def __init__(self, graph: Path, files: ModelFiles, *, threads: int) -> None:
        """Load `graph`, the one of `files` (see `ragplane.core.onnx_export`). Raises ModelError."""
        try:
            self._session = onnxruntime.InferenceSession(
                str(graph), _options(threads), providers=["CPUExecutionProvider"]
            )
        except _ORT_ERRORS as error:
            raise ModelError(f"model {files.name}: {error}") from error
        self._with_types = "token_type_ids" in {node.name for node in self._session.get_inputs()}
        outputs = [node.name for node in self._session.get_outputs()]
        self._output = next(name for name in OUTPUTS[files.task] if name in outputs)
        self._task = files.task
        self._pad_id = files.pad_id

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        """As `Backend.forward`; the batch is padded on the right to its longest input."""
        feed = graph_inputs(inputs, self._pad_id, with_types=self._with_types)
        try:
            (rows,) = self._session.run([self._output], feed)
        except _ORT_ERRORS as error:
            raise ModelError(f"forward pass of {len(inputs)} inputs: {error}") from error
        return unpadded(rows, inputs, self._task)


def _options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Every batch has another shape: an arena would keep the largest of each and grow for hours.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    # Idle workers would spin on the CPUs that tokenising and the event loop need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return options
