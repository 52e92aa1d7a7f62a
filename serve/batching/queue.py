"""The queue between the event loop and the worker thread."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

from ragplane.core.config import DEFAULT_TENANT
from ragplane.core.errors import UnavailableError
from serve.backends.base import ModelInput
from serve.batching.cost import CostModel
from serve.batching.fairness import Clock, Flow, charge, turn
from serve.batching.policy import compose
from serve.batching.work import LANES, Lane, Waiting, Work

# How many of the oldest are looked at to find equal lengths. More would sort better, and cost more.
WINDOW = 256
Scheduling = Literal["fair", "fifo"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one micro-batch may cost, and how many inputs it may hold."""

    budget_tokens: float
    max_inputs: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Items of one equal input, which runs once."""

    input: ModelInput
    items: tuple[tuple[Waiting, Work[object]], ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """One micro-batch, of one lane. And what was dropped on the way to it."""

    groups: tuple[Group, ...]
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
        self._tokens: defaultdict[Flow, float] = defaultdict(float)
        self._sizes: Counter[Lane] = Counter(dict.fromkeys(LANES, 0))
        self._served_s: dict[Flow, float] = {}
        self._clock = Clock()
        self._changed = threading.Condition()
        self._closed = False

    @property
    def sizes(self) -> Mapping[Lane, int]:
        """Inputs that wait, by lane."""
        with self._changed:
            return dict(self._sizes)

    @property
    def tokens(self) -> Mapping[Flow, float]:
        """Cost of what waits, by flow."""
        with self._changed:
            return dict(self._tokens)

    def flow(self, lane: Lane, tenant: str) -> Flow:
        """The flow that inputs of a tenant in a lane are queued in."""
        return Flow(lane, tenant) if self._fair else Flow(LANES[0], DEFAULT_TENANT)

    def put(self, items: Sequence[Waiting]) -> None:
        """Append all of `items`. Raises UnavailableError once closed."""
        with self._changed:
            if self._closed:
                raise UnavailableError("the encoder is closed")
            for item in items:
                flow = self._flow(item)
                self._flows.setdefault(flow, deque()).append(item)
                self._tokens[flow] += item.cost_tokens
                self._sizes[item.terms.lane] += 1
            self._changed.notify_all()

    def discard(self, items: Iterable[Waiting]) -> None:
        """Give up those of `items` that still wait: they count no more, and their ids are freed."""
        with self._changed:
            for item in items:
                self._forget(item)

    def take(self) -> Taken | None:
        """Wait for work, then compose a micro-batch from all that waits now; None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._flows or self._closed)
            return None if self._closed else self._take(time.monotonic())

    def clear(self) -> list[Waiting]:
        """Remove and return everything."""
        with self._changed:
            items = [item for flow in self._flows.values() for item in flow]
            for item in items:
                self._forget(item)
            self._flows = {}
            return items

    def close(self) -> None:
        """End `take`, now and later."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _flow(self, item: Waiting) -> Flow:
        return self.flow(item.terms.lane, item.terms.tenant)

    def _take(self, now_s: float) -> Taken:
        flows = turn(self._clock, self._unserved_s(now_s))
        share = max(1, WINDOW // len(flows))
        oldest = chain.from_iterable(islice(self._flows[flow], share) for flow in flows)
        window = list(islice(oldest, WINDOW))
        expired = [item for item in window if _is_expired(item, now_s)]
        cancelled = [i for i in window if i.future.done() and not _is_expired(i, now_s)]
        dead = {*expired, *cancelled}
        groups = _equal(item for item in window if item not in dead)
        lengths = [len(group.input.ids) for group in groups]
        chosen = compose(
            lengths,
            self.cost,
            budget_tokens=self.limits.budget_tokens,
            max_inputs=self.limits.max_inputs,
        )
        batch = tuple(groups[index] for index in chosen)
        self._remove({*dead, *(item for group in batch for item, _ in group.items)}, flows, share)
        self._charge([group.items[0][0] for group in batch], now_s)
        cost_tokens = self.cost.tokens([lengths[index] for index in chosen])
        return Taken(batch, cost_tokens, len(cancelled), tuple(expired))

    def _unserved_s(self, now_s: float) -> dict[Flow, float]:
        """How long each flow has waited since it was served, or since its oldest came."""
        return {
            flow: now_s - max(self._served_s.get(flow, 0.0), items[0].enqueued_s)
            for flow, items in self._flows.items()
        }

    def _charge(self, computed: Sequence[Waiting], now_s: float) -> None:
        used: dict[Flow, float] = {}
        for item in computed:
            flow = self._flow(item)
            used[flow] = used.get(flow, 0.0) + item.cost_tokens
        if used:
            self._clock = charge(self._clock, used, self._flows)
        served = self._served_s | dict.fromkeys(used, now_s)
        self._served_s = {flow: at_s for flow, at_s in served.items() if flow in self._flows}

    def _remove(self, items: set[Waiting], flows: Sequence[Flow], share: int) -> None:
        """All of them are among the oldest `share` of their flows."""
        for item in items:
            self._forget(item)
        for flow in flows:
            waiting = self._flows[flow]
            front = [waiting.popleft() for _ in range(min(share, len(waiting)))]
            waiting.extendleft(item for item in reversed(front) if item not in items)
            if not waiting:
                del self._flows[flow]

    def _forget(self, item: Waiting) -> None:
        if item.work is None:
            return
        item.work = None
        flow = self._flow(item)
        self._sizes[item.terms.lane] -= 1
        self._tokens[flow] -= item.cost_tokens
        if self._tokens[flow] < 1:  # what is left of the sums is rounding: no input costs less
            del self._tokens[flow]


def _is_expired(item: Waiting, now_s: float) -> bool:
    return item.terms.deadline_s is not None and item.terms.deadline_s < now_s


def _equal(items: Iterable[Waiting]) -> list[Group]:
    """Items of equal inputs together, in the order of the first of each."""
    groups: dict[ModelInput, list[tuple[Waiting, Work[object]]]] = {}
    for item in items:
        if item.work is not None:
            groups.setdefault(item.work.input, []).append((item, item.work))
    return [Group(input_, tuple(members)) for input_, members in groups.items()]
