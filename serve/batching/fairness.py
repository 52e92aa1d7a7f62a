"""Whose turn it is: weighted fair queueing over lanes, and over the tenants within a lane.

Start-time fair queueing (Goyal, Vin, Cheng 1996): each lane, and each tenant in it, has a virtual
time that advances by what it consumed over its weight, and the one furthest behind is served. Who
was idle starts at the present, so nobody saves up a claim. All of it is pure: a clock goes in, a
clock comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from serve.batching.work import LANES, Lane

WEIGHTS: Mapping[Lane, float] = {"interactive": 4.0, "bulk": 1.0}
# A tenant that waits and has not been served for so long goes first in its lane.
MAX_AGE_S = 10.0
# Idle tenants that are remembered. Names are the clients' to choose, so there may be any number.
_MOST_IDLE = 1024


class Flow(NamedTuple):
    """The inputs of one tenant in one lane."""

    lane: Lane
    tenant: str


@dataclass(frozen=True, slots=True)
class Times:
    """Virtual times, in tokens: of those that are served, and the present."""

    of: Mapping[str, float] = field(default_factory=dict)
    now: float = 0.0

    def start(self, name: str) -> float:
        """The virtual time at which `name` is served next."""
        return max(self.of.get(name, 0.0), self.now)

    def charged(self, used: Mapping[str, float], waiting: Iterable[str]) -> Times:
        """After each name consumed its amount; the present is the start of the one furthest behind.

        Who neither waits nor is ahead of the present is forgotten.
        """
        starts = {name: self.start(name) for name in used}
        times = {**self.of, **{name: starts[name] + amount for name, amount in used.items()}}
        keep = set(waiting)
        now = min(starts.values()) if keep else max(times.values())  # the end of a busy time
        ahead = {name for name, time in times.items() if time > now}
        if len(ahead) > _MOST_IDLE:
            ahead.clear()
        return Times({n: t for n, t in times.items() if n in keep or n in ahead}, now)


@dataclass(frozen=True, slots=True)
class Clock:
    """The virtual times of the lanes, and of the tenants in each."""

    lanes: Times = field(default_factory=Times)
    tenants: Mapping[Lane, Times] = field(default_factory=lambda: {lane: Times() for lane in LANES})


def turn(clock: Clock, unserved_s: Mapping[Flow, float]) -> list[Flow]:
    """The flows of the lane that is next, the one whose turn it is first.

    `unserved_s` has every flow that waits, and for how long it has waited since it was served. In
    a tie of lanes the interactive one goes first.
    """
    if not unserved_s:
        return []
    lanes = {flow.lane for flow in unserved_s}
    lane = min(lanes, key=lambda name: (clock.lanes.start(name), LANES.index(name)))
    tenants = clock.tenants[lane]

    def rank(flow: Flow) -> tuple[float, float]:
        age_s = unserved_s[flow]
        return (-age_s if age_s > MAX_AGE_S else 0.0, tenants.start(flow.tenant))

    return sorted((flow for flow in unserved_s if flow.lane == lane), key=rank)


def charge(clock: Clock, used_tokens: Mapping[Flow, float], waiting: Iterable[Flow]) -> Clock:
    """The clock after a batch of one lane that cost each flow its `used_tokens`."""
    flows = list(waiting)
    lane = next(iter(used_tokens)).lane
    spent = sum(used_tokens.values()) / WEIGHTS[lane]
    lanes = clock.lanes.charged({lane: spent}, (flow.lane for flow in flows))
    used = {flow.tenant: tokens for flow, tokens in used_tokens.items()}
    names = [flow.tenant for flow in flows if flow.lane == lane]
    return Clock(lanes, {**clock.tenants, lane: clock.tenants[lane].charged(used, names)})
