"""Exported graphs on OpenVINO, on the CPU. An extra: `pip install 'ragplane[openvino]'`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from ragplane.core.errors import ModelError
from ragplane.core.models import ModelFiles
from ragplane.core.onnx_export import OUTPUTS
from serve.backends.base import Backend, ModelInput
from serve.backends.padding import graph_inputs, unpadded
from serve.encoder import Vectors

_PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}


class OpenVinoBackend(Backend):
    """One compiled graph; bfloat16 wants a processor with AVX512-BF16 or AMX."""

    name = "openvino"
    packed = False
    streams = 1

    def __init__(self, graph: Path, files: ModelFiles, *, dtype: str, threads: int) -> None:
        """Compile `graph`, the one of `files` (see `ragplane.core.onnx_export`).

        Raises ModelError, also where OpenVINO is not installed.
        """
        openvino = _import_openvino()
        self.dtype = dtype
        options = {
            "INFERENCE_PRECISION_HINT": _PRECISIONS[dtype],
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
        }
        try:
            core = openvino.Core()
            compiled = core.compile_model(core.read_model(graph), "CPU", options)
        except RuntimeError as error:
            raise ModelError(f"model {files.name}: {error}") from error
        self._request = compiled.create_infer_request()
        self._with_types = any("token_type_ids" in port.names for port in compiled.inputs)
        self._output = next(
            port for name in OUTPUTS[files.task] for port in compiled.outputs if name in port.names
        )
        self._task = files.task
        self._pad_id = files.pad_id

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        """As `Backend.forward`; the batch is padded on the right to its longest input."""
        feed = graph_inputs(inputs, self._pad_id, with_types=self._with_types)
        try:
            # The result is a copy: the request's own buffers change with the next pass.
            rows = np.asarray(self._request.infer(feed)[self._output], np.float32)
        except RuntimeError as error:
            raise ModelError(f"forward pass of {len(inputs)} inputs: {error}") from error
        return unpadded(rows, inputs, self._task)


def _import_openvino() -> Any:
    # OpenVINO tells its maker of every import through this library, where it can be imported.
    sys.modules.setdefault("openvino_telemetry", cast(ModuleType, None))
    try:
        import openvino
    except ImportError as error:
        raise ModelError(
            "backend openvino: not installed; `pip install 'ragplane[openvino]'`"
        ) from error
    return openvino
