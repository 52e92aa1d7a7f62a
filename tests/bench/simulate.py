"""`python -m tests.bench.simulate`: the scheduling policy in virtual time, without a model.

Arrival traces are played against the pure decisions of serve/batching (whose turn it is, what a
micro-batch holds, what it costs), on a backend that always runs at the same speed. It prints how
long inputs wait, by lane and tenant, and what bulk gets done.
"""

from __future__ import annotations

import argparse
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from serve.batching.cost import CostModel
from serve.batching.fairness import Clock, Flow, charge, turn
from serve.batching.policy import compose
from serve.batching.queue import WINDOW
from tests.bench.report import percentiles, table
from tests.bench.texts import bulk_lengths

QUERY_TOKENS = 12
_BATCH = 32
_ONE_FLOW = Flow("interactive", "all")


@dataclass(frozen=True, slots=True)
class Arrival:
    """An input that comes at `at_s`."""

    at_s: float
    flow: Flow
    tokens: int


@dataclass
class Backend:
    """Tokens per second, the budget of a micro-batch, and what a longer input costs."""

    tokens_per_s: float
    budget_tokens: float
    cost: CostModel = field(default_factory=lambda: CostModel(packed=True, attention_tokens=2048))


@dataclass
class Outcome:
    """Waits from arrival to the start of the micro-batch, and tokens done in `seconds`."""

    waits_ms: dict[Flow, list[float]] = field(default_factory=dict)
    tokens: dict[Flow, int] = field(default_factory=dict)
    seconds: float = 0.0

    def note(self, arrival: Arrival, now_s: float) -> None:
        """Count an input that starts now."""
        self.waits_ms.setdefault(arrival.flow, []).append((now_s - arrival.at_s) * 1000)
        self.tokens[arrival.flow] = self.tokens.get(arrival.flow, 0) + arrival.tokens


def play(arrivals: Iterable[Arrival], backend: Backend, *, fair: bool, until_s: float) -> Outcome:
    """Run the arrivals through the policy until the virtual clock reads `until_s`."""
    coming = deque(sorted(arrivals, key=lambda arrival: arrival.at_s))
    waiting: dict[Flow, deque[Arrival]] = {}
    clock, now_s, outcome = Clock(), 0.0, Outcome()
    served_s: dict[Flow, float] = {}
    while now_s < until_s and (coming or waiting):
        if not waiting:
            now_s = max(now_s, coming[0].at_s)
        while coming and coming[0].at_s <= now_s:
            arrival = coming.popleft()
            waiting.setdefault(arrival.flow if fair else _ONE_FLOW, deque()).append(arrival)
        unserved_s = {
            flow: now_s - max(served_s.get(flow, 0.0), queue[0].at_s)
            for flow, queue in waiting.items()
        }
        batch = _batch(turn(clock, unserved_s), waiting, backend)
        served_s |= dict.fromkeys(batch, now_s)
        clock = _charged(clock, batch, waiting, backend)
        for arrival in chain.from_iterable(batch.values()):
            outcome.note(arrival, now_s)
        lengths = [arrival.tokens for arrival in chain.from_iterable(batch.values())]
        now_s += backend.cost.tokens(lengths) / backend.tokens_per_s
    outcome.seconds = now_s
    return outcome


def _batch(
    flows: Sequence[Flow], waiting: dict[Flow, deque[Arrival]], backend: Backend
) -> dict[Flow, list[Arrival]]:
    """Take the next micro-batch, of these flows, out of `waiting`."""
    share = max(1, WINDOW // len(flows))
    window = [(flow, arrival) for flow in flows for arrival in islice(waiting[flow], share)]
    lengths = [arrival.tokens for _, arrival in window]
    batch: dict[Flow, list[Arrival]] = {}
    for index in compose(lengths, backend.cost, budget_tokens=backend.budget_tokens):
        flow, arrival = window[index]
        batch.setdefault(flow, []).append(arrival)
        waiting[flow].remove(arrival)
        if not waiting[flow]:
            del waiting[flow]
    return batch


def _charged(
    clock: Clock,
    batch: dict[Flow, list[Arrival]],
    waiting: dict[Flow, deque[Arrival]],
    backend: Backend,
) -> Clock:
    used = {
        flow: sum(backend.cost.tokens([one.tokens]) for one in taken)
        for flow, taken in batch.items()
    }
    return charge(clock, used, waiting)


def queries(tenant: str, per_s: float, until_s: float, seed: int) -> Iterator[Arrival]:
    """Single short queries, Poisson."""
    draw, at_s = random.Random(seed), 0.0
    while (at_s := at_s + draw.expovariate(per_s)) < until_s:
        yield Arrival(at_s, Flow("interactive", tenant), QUERY_TOKENS)


def bursts(tenant: str, size: int, every_s: float, until_s: float) -> Iterator[Arrival]:
    """`size` queries at once, again and again."""
    for step in range(int(until_s / every_s)):
        for _ in range(size):
            yield Arrival(step * every_s, Flow("interactive", tenant), QUERY_TOKENS)


def flood(
    tenant: str, tokens_per_s: float, until_s: float, flow: Flow | None = None
) -> Iterator[Arrival]:
    """Batches of 32 mixed texts, `tokens_per_s` in all."""
    lengths, at_s = bulk_lengths(4096), 0.0
    while at_s < until_s:
        for start in range(0, len(lengths), _BATCH):
            batch = lengths[start : start + _BATCH]
            for tokens in batch:
                yield Arrival(at_s, flow or Flow("bulk", tenant), tokens)
            at_s += sum(batch) / tokens_per_s


def traces(speed: float, until_s: float) -> dict[str, Callable[[], list[Arrival]]]:
    """What arrives in each scenario. A flood is as much as the backend can do, or more."""
    crowd = Flow("interactive", "crowd")
    return {
        "Poisson queries, 5/s, beside a bulk flood": lambda: [
            *queries("reader", 5, until_s, 1),
            *flood("crawler", 1.5 * speed, until_s),
        ],
        "bursts of 64 queries a second, beside a bulk flood": lambda: [
            *bursts("reader", 64, 1.0, until_s),
            *flood("crawler", 1.5 * speed, until_s),
        ],
        "one tenant floods bulk, another sends a tenth": lambda: [
            *flood("crawler", 1.5 * speed, until_s),
            *flood("modest", 0.1 * speed, until_s),
        ],
        "both lanes flooded, and a reader": lambda: [
            *queries("reader", 5, until_s, 1),
            *flood("crowd", 1.5 * speed, until_s, crowd),
            *flood("crawler", 1.5 * speed, until_s),
        ],
    }


def rows(name: str, outcome: Outcome) -> Iterator[Sequence[str]]:
    """A row for each lane and tenant."""
    for flow in sorted(outcome.waits_ms):
        rate = outcome.tokens[flow] / outcome.seconds
        cells = [name, flow.lane, flow.tenant, f"{len(outcome.waits_ms[flow]):,}"]
        yield [*cells, *percentiles(outcome.waits_ms[flow]), f"{rate:,.0f}"]


def main() -> None:
    """Print a table for each trace."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulate")
    parser.add_argument("--tokens-per-s", type=float, default=25_000)
    parser.add_argument("--budget-tokens", type=float, default=2048)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    backend = Backend(given.tokens_per_s, given.budget_tokens)
    print(f"{backend.tokens_per_s:,.0f} tokens/s, micro-batches of {backend.budget_tokens:,.0f}")
    head = ["scheduling", "lane", "tenant", "started", "wait p50 ms", "p99 ms", "tokens/s"]
    for title, arrivals in traces(backend.tokens_per_s, given.seconds).items():
        found: list[Sequence[str]] = []
        for name in ("fair", "fifo"):
            outcome = play(arrivals(), backend, fair=name == "fair", until_s=given.seconds)
            found.extend(rows(name, outcome))
        print(f"\n### {title}\n\n" + "\n".join(table(head, found)))


if __name__ == "__main__":
    main()
