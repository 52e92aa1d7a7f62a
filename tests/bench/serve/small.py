"""Small: one short text a request, many requests at once."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence

from tests.bench.http_client import Load, closed_loop, post
from tests.bench.processes import MODEL, Server, infinity, ragplane
from tests.bench.report import best_and_median, percentiles, table
from tests.bench.serve.options import Options
from tests.bench.texts import texts_of

CLIENTS = 32
TOKENS = 12
_TEXTS = 20_000


def measure(options: Options) -> list[str]:
    """Requests per second and latencies of ours and of Infinity."""
    texts = texts_of([TOKENS] * _TEXTS, seed=7)
    rates: dict[str, list[float]] = {}
    latencies: dict[str, list[float]] = {}
    shares: list[float] = []
    with ragplane() as ours, infinity() as peer:
        ways = {
            "Ragplane": (ours, _requests("/v1/embeddings", texts)),
            "Infinity": (peer, _requests("/embeddings", texts)),
        }
        for server, requests in ways.values():
            _run(server, requests, options.small_s / 4)
        for _ in range(options.rounds):
            for name, (server, requests) in ways.items():
                used = time.process_time()
                load = _run(server, requests, options.small_s)
                shares.append((time.process_time() - used) / load.seconds)
                rates.setdefault(name, []).append(len(load.latencies_ms) / load.seconds)
                latencies.setdefault(name, []).extend(load.latencies_ms)
    mine = max(rates["Ragplane"])
    rows = [
        [name, *best_and_median(found), *percentiles(latencies[name]), f"{mine / max(found):.2f}"]
        for name, found in rates.items()
    ]
    head = ["server", "requests/s, best", "median", "p50 ms", "p99 ms", "ours is times that"]
    note = f"the load generator took {max(shares):.0%} of one CPU at most"
    return [*table(head, rows), "", note]


def _requests(path: str, texts: Sequence[str]) -> Iterator[bytes]:
    """Made now; they come round again after the last one."""
    body = {"model": MODEL, "encoding_format": "base64"}
    return itertools.cycle([post(path, body | {"input": [text]}) for text in texts])


def _run(server: Server, requests: Iterator[bytes], limit_s: float) -> Load:
    with server.running():
        run = closed_loop(server.address, requests, clients=CLIENTS, limit_s=limit_s)
        return asyncio.run(run)
