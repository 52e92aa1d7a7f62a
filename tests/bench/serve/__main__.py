"""`python -m tests.bench.serve [TABLE...]`: our server beside its peers, as Markdown tables.

Needs the peers' environments (`make bench-setup`). Settings of our server come from RAGPLANE_* in
the environment, as always.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

from tests.bench.processes import exit_on_sigterm, ragplane
from tests.bench.report import machine
from tests.bench.serve import bulk, cost, fairness, rerank, small
from tests.bench.serve.options import Options

TABLES: dict[str, tuple[str, Callable[[Options], list[str]]]] = {
    "bulk": ("Bulk: batches of 32, 8 at once", bulk.measure),
    "small": ("Small: one text of 12 tokens a request, 32 at once", small.measure),
    "fairness": ("Fairness: queries of 12 tokens, 5 a second, beside bulk", fairness.measure),
    "rerank": ("Rerank: 50 documents of 200 tokens, a query of 12", rerank.measure),
    "cost": ("Cost of HTTP at bulk, and start", cost.measure),
}


def main() -> None:
    """Print the tables that were asked for, each as soon as it is there."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.serve")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--texts", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small-s", type=float, default=4.0, help="seconds of a round")
    parser.add_argument("--fairness-s", type=float, default=22.0, help="seconds of a policy")
    given = parser.parse_args()
    if unknown := set(given.tables) - set(TABLES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    exit_on_sigterm()
    options = Options(given.texts, given.rounds, given.small_s, given.fairness_s)
    print("\n".join(f"- {line}" for line in [*machine(), _served()]))
    print(f"- command: `python -m tests.bench.serve {' '.join(sys.argv[1:])}`".rstrip())
    for name in given.tables or TABLES:
        title, measure = TABLES[name]
        print(f"\n### {title}\n")
        print("\n".join(measure(options)), flush=True)


def _served() -> str:
    """What our server says of itself: the backend that it chose, and the precision."""
    with ragplane() as server, server.running():
        info = json.loads(server.get("/info"))
    shown = ("model_id", "backend", "model_dtype", "parity", "micro_batch_tokens")
    return "our server: " + ", ".join(f"{name} {info[name]}" for name in shown if name in info)


if __name__ == "__main__":
    main()
