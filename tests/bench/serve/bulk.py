"""Bulk: mixed texts in batches, over HTTP; beside it the peers, and the ceilings of the machine."""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragplane.core.cpu import available_cpus
from ragplane.core.models import read_model
from ragplane.core.onnx_export import exported_graph
from tests.bench.http_client import Load, closed_loop, post
from tests.bench.processes import MODEL, ROOT, Server, Worker, infinity, ragplane, script
from tests.bench.report import best_and_median, table
from tests.bench.serve.options import BULK_CLIENTS, CLIENT_BATCH, Options
from tests.bench.texts import bulk_lengths, in_batches, model_folder, texts_of

OURS = "Ragplane over HTTP"
_LINEAR_FLOP = 6 * 2 * (4 * 384 * 384 + 2 * 384 * 1536)  # of one token
_ATTENTION_FLOP = 6 * 2 * 2 * 384  # of one token, for each token that it attends to

Way = Callable[[Sequence[str]], float]


def measure(options: Options) -> list[str]:
    """Tokens per second of each way, and how many times that ours is."""
    lengths = bulk_lengths(options.texts)
    with (
        ragplane() as ours,
        infinity() as peer,
        script("sentence_transformers_script") as reference,
        script("ceilings_script") as ceilings,
    ):
        ways = _ways(ours, peer, reference, ceilings)
        rates: dict[str, list[float]] = defaultdict(list)
        gemm: dict[str, float] = defaultdict(float)
        for way in ways.values():
            way(texts_of(lengths[: 2 * CLIENT_BATCH], seed=-1))
        for round_ in range(options.rounds):
            texts = texts_of(lengths, seed=round_)  # other texts each time: nothing is cached
            for name, way in ways.items():
                rates[name].append(sum(lengths) / way(texts))
            for name, gflops in ceilings.call("gemm", threads=available_cpus()).items():
                gemm[name] = max(gemm[name], gflops)
        cosine = min(_cosines(ours, reference, texts_of(lengths, seed=0)))
    return [*_table(rates, gemm, lengths), "", f"{_notes(lengths)}; least cosine {cosine:.6f}"]


def post_bulk(server: Server, path: str, texts: Sequence[str]) -> Load:
    """Batches of 32, 8 at once."""
    body = {"model": MODEL, "encoding_format": "base64"}
    batches = in_batches(texts, CLIENT_BATCH)
    requests = [post(path, body | {"input": batch}) for batch in batches]
    with server.running():
        return asyncio.run(closed_loop(server.address, requests, clients=BULK_CLIENTS))


def _ways(ours: Server, peer: Server, reference: Worker, ceilings: Worker) -> dict[str, Way]:
    graph, threads = str(_graph()), available_cpus()

    def ceiling(way: str) -> Way:
        def run(texts: Sequence[str]) -> float:
            arguments = {"way": way, "graph": graph, "threads": threads, "texts": texts}
            return float(ceilings.call("run", **arguments)["seconds"])

        return run

    return {
        OURS: lambda texts: post_bulk(ours, "/v1/embeddings", texts).seconds,
        "Infinity (torch fp32) over HTTP": lambda t: post_bulk(peer, "/embeddings", t).seconds,
        "sentence-transformers fp32, batch 32": lambda texts: float(
            reference.call("encode", texts=texts)["seconds"]
        ),
        "OpenVINO bf16, called directly": ceiling("openvino"),
        "ONNX Runtime fp32, called directly": ceiling("onnxruntime"),
    }


def _graph() -> Path:
    """The model as ONNX, exported once."""
    return exported_graph(read_model(str(model_folder())), ROOT / ".cache" / "bench")


def _cosines(ours: Server, reference: Worker, texts: Sequence[str]) -> NDArray[np.float64]:
    """Of our vectors with those of sentence-transformers, text by text."""
    bodies = post_bulk(ours, "/v1/embeddings", texts).bodies
    mine = np.concatenate([_vectors(bodies[index]) for index in sorted(bodies)])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.npy"
        reference.call("encode", texts=texts, vectors_to=str(file))
        theirs = np.load(file).astype(np.float64)
    norms = np.linalg.norm(mine, axis=1) * np.linalg.norm(theirs, axis=1)
    cosines: NDArray[np.float64] = (mine * theirs).sum(axis=1) / norms
    return cosines


def _vectors(body: bytes) -> NDArray[np.float64]:
    rows = sorted(json.loads(body)["data"], key=lambda row: int(row["index"]))
    coded = (base64.b64decode(row["embedding"]) for row in rows)
    return np.stack([np.frombuffer(one, "<f4") for one in coded]).astype(np.float64)


def _table(
    rates: dict[str, list[float]], gemm: dict[str, float], lengths: Sequence[int]
) -> list[str]:
    mine = max(rates[OURS])
    attended = sum(length * length for length in lengths) / sum(lengths)
    flop = _LINEAR_FLOP + _ATTENTION_FLOP * attended
    ceilings = {
        f"bf16 GEMM peak, {gemm['peak']:,.0f} GFLOP/s": gemm["peak"] * 1e9 / flop,
        f"bf16 GEMM in this model's shapes, {gemm['own']:,.0f} GFLOP/s": gemm["own"] * 1e9 / flop,
    }
    rows = [
        [name, *best_and_median(found), f"{mine / max(found):.2f}"] for name, found in rates.items()
    ]
    rows += [[name, f"{rate:,.0f}", "", f"{mine / rate:.2f}"] for name, rate in ceilings.items()]
    return table(["way", "tokens/s, best", "median", "ours is times that"], rows)


def _notes(lengths: Sequence[int]) -> str:
    mean = sum(lengths) / len(lengths)
    return f"{len(lengths):,} texts of {mean:.0f} tokens on average"
