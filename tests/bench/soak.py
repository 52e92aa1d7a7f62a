"""`make bench-soak`: whether the server's memory stays flat over many unlike requests.

Exit status 1 when the memory grows by 5 % or more after the warm-up, or an answer is not what the
request calls for.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psutil

from tests.bench.http_client import Connection, connected, post
from tests.bench.processes import Server, exit_on_sigterm, ragplane
from tests.bench.report import table
from tests.bench.texts import text_of

CLIENTS = 16
GROWTH_LIMIT = 0.05
WARM_UP_SHARE = 0.05
_SAMPLES = 200
_MAX_INPUTS, _MAX_TOKENS = 4, 300
_HANG_UP_SHARE = 0.05
_BAD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/embed", {"inputs": []}),
    ("/embed", {"inputs": ""}),
    ("/embed", {"inputs": {"a": 1}}),
    ("/embed", {"inputs": [[-1, 10**9]]}),
    ("/embed", {"inputs": "word " * 400, "truncate": False}),
    ("/v1/embeddings", {"input": "x", "dimensions": 0}),
    ("/v1/embeddings", {"input": "x", "encoding_format": "hex"}),
    ("/v1/embeddings", {}),
    ("/rerank", {"query": "x", "texts": []}),
    ("/rerank", {"query": "", "texts": ["x"]}),
)


class Case(NamedTuple):
    """A request, whether it is a good one, and after how long its client hangs up."""

    name: str
    request: bytes
    good: bool
    hang_up_s: float | None = None


@dataclass
class Course:
    """What has happened so far."""

    server: Server
    total: int
    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    rss_mb: list[float] = field(default_factory=list)

    def note(self, name: str, outcome: str, *, expected: bool) -> None:
        """Count one request, and sample the memory now and then."""
        self.outcomes[f"{name}: {outcome}"] += 1
        if not expected:
            self.wrong[f"{name}: {outcome}"] += 1
        self.done += 1
        if self.done % max(1, self.total // _SAMPLES) == 0:
            self.rss_mb.append(_rss_mb(self.server))
        if self.done % max(1, self.total // 10) == 0:
            print(f"{self.done:,} requests, {self.rss_mb[-1]:,.0f} MB", file=sys.stderr)


def cases(count: int, seed: int) -> Iterator[Case]:
    """Good requests of every kind and size, some bad ones, some whose client goes away."""
    draw = random.Random(seed)
    for _ in range(count):
        if draw.random() < 0.1:
            path, body = draw.choice(_BAD)
            yield Case(f"bad {path}", post(path, body), good=False)
            continue
        path, body = _good(draw)
        away_s = draw.uniform(0, 0.05) if draw.random() < _HANG_UP_SHARE else None
        yield Case(path, post(path, body), good=True, hang_up_s=away_s)


def _good(draw: random.Random) -> tuple[str, dict[str, Any]]:
    count = draw.randint(1, _MAX_INPUTS)
    kind = draw.choices(("embed", "openai", "ids", "rerank"), (4, 3, 1, 2))[0]
    if kind == "ids":
        rows = [[draw.randint(1000, 30000) for _ in range(_length(draw))] for _ in range(count)]
        return "/v1/embeddings", {"input": rows}
    texts = [text_of(_length(draw), draw) for _ in range(count)]
    if kind == "embed":
        return "/embed", {"inputs": texts, "truncate": True}
    if kind == "rerank":
        return "/rerank", {"query": text_of(12, draw), "texts": texts}
    return "/v1/embeddings", {
        "input": texts,
        "encoding_format": draw.choice(("float", "base64")),
    }


def _length(draw: random.Random) -> int:
    """1 to 300 tokens; short ones are as frequent as in log scale."""
    return round(math.exp(draw.uniform(0, math.log(_MAX_TOKENS))))


async def run(server: Server, total: int) -> Course:
    """Send everything, some at once."""
    course, waiting = Course(server, total), cases(total, seed=11)

    async def client() -> None:
        for case in waiting:
            async with connected(server.address) as connection:
                following: Case | None = case
                while following is not None and await _send(course, connection, following):
                    following = next(waiting, None)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return course


async def _send(course: Course, connection: Connection, case: Case) -> bool:
    """Send one request; whether the connection is good for another one."""
    answer = connection.send(case.request)
    if case.hang_up_s is not None:
        await asyncio.sleep(case.hang_up_s)
        answer.cancel()
        course.note(case.name, "hung up", expected=True)
        return False
    try:
        status = (await answer).status
    except ConnectionError as error:
        course.note(case.name, str(error), expected=False)
        return False
    expected = status == 200 if case.good else 400 <= status < 500
    course.note(case.name, str(status), expected=expected)
    return True


def _rss_mb(server: Server) -> float:
    process = psutil.Process(server.process.pid)
    every = [process, *process.children(recursive=True)]
    return float(sum(one.memory_info().rss for one in every)) / 1e6


def main() -> int:
    """Run, print a table, and say whether the memory stayed flat."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak")
    parser.add_argument("--requests", type=int, default=100_000)
    total: int = parser.parse_args().requests
    exit_on_sigterm()
    with ragplane() as server, server.running():
        started = time.perf_counter()
        course = asyncio.run(run(server, total))
        seconds = time.perf_counter() - started
    warm = math.ceil(len(course.rss_mb) * WARM_UP_SHARE)
    before = statistics.median(course.rss_mb[warm : 2 * warm])
    after = statistics.median(course.rss_mb[-warm:])
    growth = after / before - 1
    head = ["requests", "seconds", "RSS after warm-up, MB", "at the end", "most", "growth"]
    row = [f"{total:,}", f"{seconds:,.0f}", f"{before:,.0f}", f"{after:,.0f}"]
    print("\n".join(table(head, [[*row, f"{max(course.rss_mb):,.0f}", f"{growth:.1%}"]])))
    print("\n" + ", ".join(f"{name} {n:,}" for name, n in sorted(course.outcomes.items())))
    for name, count in course.wrong.items():
        print(f"error: {name} {count:,} times", file=sys.stderr)
    return int(growth >= GROWTH_LIMIT or bool(course.wrong))


if __name__ == "__main__":
    sys.exit(main())
