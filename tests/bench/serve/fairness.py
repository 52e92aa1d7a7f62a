"""Fairness: what single queries wait while one tenant floods the bulk lane."""

from __future__ import annotations

import asyncio
import itertools
import random
from dataclasses import dataclass
from typing import NamedTuple

from tests.bench.http_client import Load, closed_loop, open_loop, post
from tests.bench.processes import Server, ragplane
from tests.bench.report import percentiles, table
from tests.bench.serve.options import BULK_CLIENTS, CLIENT_BATCH, Options
from tests.bench.texts import bulk_lengths, in_batches, texts_of

QUERIES_PER_S = 5
QUERY_TOKENS = 12
_LEAD_S = 1.0  # bulk has filled the queue by then
_FLOOD = {"x-lane": "bulk", "x-tenant": "crawler"}
_QUERY = {"x-lane": "interactive", "x-tenant": "reader"}


class Batch(NamedTuple):
    """A bulk request and what it holds."""

    request: bytes
    tokens: int


@dataclass(frozen=True, slots=True)
class Mixed:
    """Bulk tokens per second, and the latencies of the queries beside it."""

    bulk_rate: float
    query_ms: list[float]


def measure(options: Options) -> list[str]:
    """Latencies of the queries under each policy, and the throughput that bulk keeps."""
    batches, seconds = _batches(options.texts), options.fairness_s
    with ragplane(RAGPLANE_SCHEDULING="fair") as server:
        before = _run(server, batches, seconds / 2, queries=False)
        fair = _run(server, batches, seconds, queries=True)
        after = _run(server, batches, seconds / 2, queries=False)
    with ragplane(RAGPLANE_SCHEDULING="fifo") as server:
        fifo = _run(server, batches, seconds, queries=True)
    alone = (before.bulk_rate + after.bulk_rate) / 2
    rows = [["bulk alone", f"{alone:,.0f}", "1.00", "", ""]]
    rows += [
        [name, f"{run.bulk_rate:,.0f}", f"{run.bulk_rate / alone:.2f}", *percentiles(run.query_ms)]
        for name, run in {"fair": fair, "fifo": fifo}.items()
    ]
    p99 = [float(percentiles(run.query_ms)[1].replace(",", "")) for run in (fair, fifo)]
    head = ["scheduling", "bulk tokens/s", "of bulk alone", "query p50 ms", "query p99 ms"]
    note = f"{len(fair.query_ms)} queries; p99 of fair / fifo = {p99[0] / p99[1]:.3f}"
    return [*table(head, rows), "", note]


def _batches(texts: int) -> list[Batch]:
    lengths = bulk_lengths(texts)
    tokens = [sum(lengths[i : i + CLIENT_BATCH]) for i in range(0, texts, CLIENT_BATCH)]
    bodies = in_batches(texts_of(lengths, seed=0), CLIENT_BATCH)
    requests = [
        post("/v1/embeddings", {"input": body, "encoding_format": "base64"}, _FLOOD)
        for body in bodies
    ]
    return [Batch(*pair) for pair in zip(requests, tokens, strict=True)]


def _run(server: Server, batches: list[Batch], seconds: float, *, queries: bool) -> Mixed:
    async def both() -> tuple[Load, Load]:
        flood = (batch.request for batch in itertools.cycle(batches))
        bulk = closed_loop(server.address, flood, clients=BULK_CLIENTS, limit_s=seconds)
        asked = _queries(server, seconds) if queries else _nothing()
        one, other = await asyncio.gather(bulk, asked)
        return one, other

    with server.running():
        bulk, asked = asyncio.run(both())
    tokens = sum(batches[index % len(batches)].tokens for index in bulk.bodies)
    return Mixed(tokens / bulk.seconds, asked.latencies_ms)


async def _queries(server: Server, seconds: float) -> Load:
    """Poisson arrivals, until a second before the flood ends."""
    draw = random.Random(3)
    due, at_s = [], _LEAD_S
    while (at_s := at_s + draw.expovariate(QUERIES_PER_S)) < seconds - _LEAD_S:
        due.append(at_s)
    requests = [
        post("/v1/embeddings", {"input": text, "encoding_format": "base64"}, _QUERY)
        for text in texts_of([QUERY_TOKENS] * len(due), seed=5)
    ]
    return await open_loop(server.address, requests, due)


async def _nothing() -> Load:
    return Load()
