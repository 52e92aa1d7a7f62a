"""What HTTP costs at bulk, and how long the server takes to start."""

from __future__ import annotations

from tests.bench.processes import module, ragplane
from tests.bench.report import best_and_median, table
from tests.bench.serve.bulk import post_bulk
from tests.bench.serve.options import CLIENT_BATCH, Options
from tests.bench.texts import bulk_lengths, texts_of

STARTS = 3


def measure(options: Options) -> list[str]:
    """Tokens per second in process and over HTTP; seconds from start to ready."""
    lengths = bulk_lengths(options.texts)
    inside: list[float] = []
    over_http: list[float] = []
    with module("tests.bench.serve.in_process") as process, ragplane() as server:
        warm_up = texts_of(lengths[: 2 * CLIENT_BATCH], seed=-1)
        process.call("bulk", texts=warm_up)
        post_bulk(server, "/v1/embeddings", warm_up)
        for round_ in range(options.rounds):
            texts = texts_of(lengths, seed=100 + round_)
            inside.append(sum(lengths) / process.call("bulk", texts=texts)["seconds"])
            load = post_bulk(server, "/v1/embeddings", texts)
            over_http.append(sum(lengths) / load.seconds)
    rows = [
        ["in process", *best_and_median(inside), "1.00"],
        ["over HTTP", *best_and_median(over_http), f"{max(over_http) / max(inside):.2f}"],
    ]
    return [*table(["way", "tokens/s, best", "median", "ratio"], rows), "", _starts()]


def _starts() -> str:
    seconds = []
    for _ in range(STARTS):
        with ragplane() as server:
            seconds.append(server.start_s)
    return "from start to ready: " + ", ".join(f"{one:.1f} s" for one in sorted(seconds))
