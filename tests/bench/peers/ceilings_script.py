"""What the machine can do without a server: OpenVINO and ONNX Runtime called directly, and GEMM."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import torch
from lines import answer
from numpy.typing import NDArray
from tokenizers import Tokenizer

_MICRO_BATCH_TOKENS = 1024
_LIMIT_TOKENS = 256
# The linear layers of MiniLM (inputs, outputs, how many of them a layer has), and larger ones.
_LINEARS = {(384, 384): 4, (384, 1536): 1, (1536, 384): 1}
_LARGE = [(2048, 2048), (4096, 4096)]
_ROWS = (1024, 4096)
_REPEATS = 8

Feed = dict[str, NDArray[np.int64]]


def main() -> None:
    """Answer for the model of argv[1]."""
    tokenizer = Tokenizer.from_file(str(Path(sys.argv[1]) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_LIMIT_TOKENS)
    runners: dict[str, Callable[[str, int], Callable[[Feed], Any]]] = {
        "openvino": cache(_openvino),
        "onnxruntime": cache(_onnxruntime),
    }

    def run(way: str, graph: str, threads: int, texts: Sequence[str]) -> dict[str, Any]:
        forward = runners[way](graph, threads)
        batches = list(_micro_batches([text.ids for text in tokenizer.encode_batch(list(texts))]))
        forward(batches[0])
        started = time.perf_counter()
        for batch in batches:
            forward(batch)
        return {"seconds": time.perf_counter() - started}

    answer({"run": run, "gemm": _gemm})


def _micro_batches(ids: Sequence[list[int]]) -> Iterator[Feed]:
    """Longest first, filled to the budget of padded tokens."""
    batch: list[list[int]] = []
    for one in sorted(ids, key=len, reverse=True):
        if batch and len(batch[0]) * (len(batch) + 1) > _MICRO_BATCH_TOKENS:
            yield _padded(batch)
            batch = []
        batch.append(one)
    yield _padded(batch)


def _padded(batch: Sequence[list[int]]) -> Feed:
    shape = (len(batch), len(batch[0]))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, one in enumerate(batch):
        ids[row, : len(one)] = one
        mask[row, : len(one)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def _openvino(graph: str, threads: int) -> Callable[[Feed], Any]:
    hints = {
        "INFERENCE_PRECISION_HINT": "bf16",
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = openvino.Core().compile_model(graph, "CPU", hints)
    request = compiled.create_infer_request()
    return lambda feed: request.infer(feed)


def _onnxruntime(graph: str, threads: int) -> Callable[[Feed], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)


def _gemm(threads: int) -> dict[str, Any]:
    """GFLOP/s of bf16 matrix products: the best of all shapes, and of the model's own linears."""
    torch.set_num_threads(threads)
    own = {shape: max(_gflops(rows, *shape) for rows in _ROWS) for shape in _LINEARS}
    large = [_gflops(rows, *shape) for rows in _ROWS for shape in _LARGE]
    work = {(i, o): i * o * count for (i, o), count in _LINEARS.items()}
    seconds = sum(work[shape] / own[shape] for shape in own)
    return {"peak": max([*own.values(), *large]), "own": sum(work.values()) / seconds}


@torch.inference_mode()
def _gflops(rows: int, inputs: int, outputs: int) -> float:
    x = torch.randn(rows, inputs, dtype=torch.bfloat16)
    weight = torch.randn(outputs, inputs, dtype=torch.bfloat16)
    bias = torch.randn(outputs, dtype=torch.bfloat16)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
    run = torch.ops.mkldnn._linear_pointwise
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.perf_counter()
        for _ in range(4):
            run(x, packed, bias, "none", [], "")
        best = min(best, (time.perf_counter() - started) / 4)
    return 2 * rows * inputs * outputs / best / 1e9


if __name__ == "__main__":
    main()
