"""The queue between the event loop and the worker thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

from ragplane.core.config import DEFAULT_TENANT
from ragplane.core.errors import UnavailableError
from serve.backends.base import ModelInput
from serve.batching.cost import CostModel
from serve.batching.fairness import Clock, Flow, charge, turn
from serve.batching.policy import compose
from serve.batching.work import LANES, Lane, Waiting

# How many of the oldest are looked at to find equal lengths. More would sort better, and cost more.
WINDOW = 256
Scheduling = Literal["fair", "fifo"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one micro-batch may cost, and how many inputs it may hold."""

    budget_tokens: float
    max_inputs: int | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """One micro-batch: groups of equal inputs, of one lane. And what was dropped on the way."""

    lane: Lane
    groups: tuple[tuple[Waiting, ...], ...]
    cost_tokens: float
    cancelled: int
    expired: tuple[Waiting, ...]


class WorkQueue:
    """Thread-safe; `put` never blocks, `take` waits for work."""

    def __init__(self, cost: CostModel, limits: Limits, scheduling: Scheduling = "fair") -> None:
        """`fifo` puts everything into one flow, whatever its lane and tenant."""
        self.cost = cost
        self.limits = limits
        self._fair = scheduling == "fair"
        self._flows: dict[Flow, deque[Waiting]] = {}
        self._tokens: dict[Lane, int] = dict.fromkeys(LANES, 0)
        self._clock = Clock()
        self._changed = threading.Condition()
        self._closed = False

    @property
    def sizes(self) -> dict[Lane, int]:
        """Inputs that wait, by lane."""
        with self._changed:
            sizes = dict.fromkeys(LANES, 0)
            for flow, items in self._flows.items():
                sizes[flow.lane] += len(items)
            return sizes

    @property
    def tokens(self) -> Mapping[Lane, int]:
        """Tokens that wait, by lane, without padding."""
        with self._changed:
            return dict(self._tokens)

    def put(self, items: Sequence[Waiting]) -> None:
        """Append all of `items`. Raises UnavailableError once closed."""
        with self._changed:
            if self._closed:
                raise UnavailableError("the encoder is closed")
            for item in items:
                flow = self._flow(item)
                self._flows.setdefault(flow, deque()).append(item)
                self._tokens[flow.lane] += len(item.work.input.ids)
            self._changed.notify()

    def take(self) -> Taken | None:
        """Wait for work, then compose a micro-batch from all that waits now; None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._flows or self._closed)
            return None if self._closed else self._take()

    def clear(self) -> list[Waiting]:
        """Remove and return everything."""
        with self._changed:
            items = [item for flow in self._flows.values() for item in flow]
            self._flows = {}
            self._tokens = dict.fromkeys(LANES, 0)
            return items

    def close(self) -> None:
        """End `take`, now and later."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _flow(self, item: Waiting) -> Flow:
        terms = item.terms
        return Flow(terms.lane, terms.tenant) if self._fair else Flow(LANES[0], DEFAULT_TENANT)

    def _take(self) -> Taken:
        flows = turn(self._clock, self._flows)
        window = self._window(flows)
        dead = [item for item in window if _is_dead(item)]
        groups = _equal([item for item in window if not _is_dead(item)])
        lengths = [len(group[0].work.input.ids) for group in groups]
        chosen = compose(
            lengths,
            self.cost,
            budget_tokens=self.limits.budget_tokens,
            max_inputs=self.limits.max_inputs,
        )
        batch = tuple(tuple(groups[index]) for index in chosen)
        cost_tokens = self.cost.tokens([lengths[index] for index in chosen])
        self._remove([*dead, *(item for group in batch for item in group)])
        if batch:
            self._charge(batch)
        expired = tuple(item for item in dead if not item.future.done())
        return Taken(flows[0].lane, batch, cost_tokens, len(dead) - len(expired), expired)

    def _window(self, flows: Sequence[Flow]) -> list[Waiting]:
        """The oldest of each flow, the flow whose turn it is first; evenly many of each."""
        share = max(1, WINDOW // len(flows))
        oldest = (islice(self._flows[flow], share) for flow in flows)
        return list(islice(chain.from_iterable(oldest), WINDOW))

    def _charge(self, batch: Sequence[Sequence[Waiting]]) -> None:
        used: dict[Flow, float] = {}
        for group in batch:
            flow = self._flow(group[0])
            used[flow] = used.get(flow, 0.0) + self.cost.tokens([len(group[0].work.input.ids)])
        now_s = time.monotonic()
        bulk = (items[0] for flow, items in self._flows.items() if flow.lane == "bulk")
        oldest_s = max((now_s - item.enqueued_s for item in bulk), default=0.0)
        self._clock = charge(self._clock, used, self._flows, oldest_s)

    def _remove(self, items: Sequence[Waiting]) -> None:
        """All of them stand near the front of their flows."""
        gone = set(items)
        for flow in {self._flow(item) for item in items}:
            waiting = self._flows[flow]
            front = [waiting.popleft() for _ in range(min(WINDOW, len(waiting)))]
            waiting.extendleft(item for item in reversed(front) if item not in gone)
            if not waiting:
                del self._flows[flow]
        for item in items:
            self._tokens[self._flow(item).lane] -= len(item.work.input.ids)


def _is_dead(item: Waiting) -> bool:
    """Whether nobody waits for it any more, or its deadline has passed."""
    deadline_s = item.terms.deadline_s
    return item.future.done() or (deadline_s is not None and deadline_s < time.monotonic())


def _equal(items: Sequence[Waiting]) -> list[list[Waiting]]:
    """Items of equal inputs together, in the order of the first of each."""
    groups: dict[ModelInput, list[Waiting]] = {}
    for item in items:
        groups.setdefault(item.work.input, []).append(item)
    return list(groups.values())
