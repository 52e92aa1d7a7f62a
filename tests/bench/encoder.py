"""Encoder throughput: in process and over HTTP, against ONNX Runtime called directly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import httpx
import numpy as np
import onnxruntime
from numpy.typing import NDArray

from ragplane.core.config import Settings
from ragplane.core.cpu import available_cpus
from ragplane.core.onnx_export import exported_graph
from serve.http.app import create_app
from serve.local import LocalEncoder

TEXTS = 256
MEAN_TOKENS, LIMIT_TOKENS = 160, 256
CLIENT_BATCH = 32
CLIENTS = 8
ROUNDS = 2


async def measure(settings: Settings, encoder: LocalEncoder) -> list[str]:
    """A Markdown table of tokens per second, best of two interleaved rounds, and ratios."""
    texts, ids = _inputs(encoder)
    direct = _Direct(settings, encoder)
    app = create_app(settings, encoder)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://bench", timeout=None
    ) as http:
        runs: dict[str, Callable[[], Awaitable[None]]] = {
            "ONNX Runtime, batches of 32 as they come": lambda: direct.run(ids, in_order=True),
            "ONNX Runtime, batches of 32 by length": lambda: direct.run(ids, in_order=False),
            "in process, 8 x 32 at once": lambda: _bulk(texts, encoder.embed),
            "HTTP (ASGI), 8 x 32 at once": lambda: _bulk(texts, lambda batch: _post(http, batch)),
        }
        best = {name: float("inf") for name in runs}
        for _ in range(ROUNDS):
            for name, run in runs.items():
                started = time.perf_counter()
                await run()
                best[name] = min(best[name], time.perf_counter() - started)
    tokens = sum(map(len, ids))
    base = best["ONNX Runtime, batches of 32 as they come"]
    rows = [f"| {n} | {tokens / s:,.0f} | {base / s:.2f} |" for n, s in best.items()]
    return ["| way | tokens/s | ratio |", "|---|---|---|", *rows]


def _inputs(encoder: LocalEncoder) -> tuple[list[str], list[tuple[int, ...]]]:
    """Texts of log-normal length (sigma 0.6), and their token ids."""
    random = np.random.default_rng(0)
    lengths = random.lognormal(np.log(MEAN_TOKENS) - 0.18, 0.6, TEXTS).astype(int)
    words = "the gate of north dome opens at noon and closes when wind rises over ridge".split()
    texts = [" ".join(random.choice(words, max(1, n - 2))) for n in lengths]
    encoded = encoder.require_embedder().tokenizer.encode(texts, max_tokens=LIMIT_TOKENS)
    return texts, [text.ids for text in encoded]


class _Direct:
    """The same graph without a server around it."""

    def __init__(self, settings: Settings, encoder: LocalEncoder) -> None:
        files = encoder.require_embedder().files
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = settings.threads or available_cpus()
        graph = exported_graph(files, settings.home_path / "models")
        self._session = onnxruntime.InferenceSession(
            str(graph), options, providers=["CPUExecutionProvider"]
        )

    async def run(self, ids: Sequence[tuple[int, ...]], *, in_order: bool) -> None:
        ordered = ids if in_order else sorted(ids, key=len)
        for start in range(0, len(ordered), CLIENT_BATCH):
            await asyncio.to_thread(
                self._session.run, None, _padded(ordered[start : start + CLIENT_BATCH])
            )


def _padded(batch: Sequence[tuple[int, ...]]) -> dict[str, NDArray[np.int64]]:
    shape = (len(batch), max(map(len, batch)))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, one in enumerate(batch):
        ids[row, : len(one)] = one
        mask[row, : len(one)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


async def _bulk(texts: Sequence[str], send: Callable[[list[str]], Awaitable[object]]) -> None:
    """Send batches of 32, 8 at a time."""
    batches = [list(texts[i : i + CLIENT_BATCH]) for i in range(0, len(texts), CLIENT_BATCH)]
    waiting = iter(batches)

    async def client() -> None:
        for batch in waiting:
            await send(batch)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


async def _post(http: httpx.AsyncClient, batch: list[str]) -> None:
    body = {"input": batch, "encoding_format": "base64"}
    (await http.post("/v1/embeddings", json=body)).raise_for_status()
