"""Encoder models on ONNX Runtime, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from ragplane.core.errors import ModelError
from serve.backend import TokenIds
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


class OnnxBackend:
    """One session over an exported encoder graph, float32."""

    name = "onnxruntime"
    dtype = "float32"

    def __init__(self, graph: Path, *, threads: int) -> None:
        """Load `graph` (see `ragplane.core.onnx_export`). Raises ModelError."""
        try:
            self._session = onnxruntime.InferenceSession(
                str(graph), _options(threads), providers=["CPUExecutionProvider"]
            )
        except _ORT_ERRORS as error:
            raise ModelError(f"model {graph.name}: {error}") from error
        self._with_types = "token_type_ids" in {node.name for node in self._session.get_inputs()}

    def forward(self, inputs: Sequence[TokenIds]) -> list[Vectors]:
        """As `Backend.forward`; the batch is padded on the right to its longest input."""
        ids, mask = _pad(inputs)
        feed = {"input_ids": ids, "attention_mask": mask}
        if self._with_types:
            feed["token_type_ids"] = np.zeros_like(ids)
        try:
            (hidden,) = self._session.run(["last_hidden_state"], feed)
        except _ORT_ERRORS as error:
            raise ModelError(f"forward pass of {len(inputs)} inputs: {error}") from error
        return [row[: len(item)] for row, item in zip(hidden, inputs, strict=True)]


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


def _pad(inputs: Sequence[TokenIds]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids and attention mask, int64 [n, longest]. The padding id is masked, so any will do."""
    ids = np.zeros((len(inputs), max(map(len, inputs))), np.int64)
    mask = np.zeros_like(ids)
    for row, item in enumerate(inputs):
        ids[row, : len(item)] = item
        mask[row, : len(item)] = 1
    return ids, mask
