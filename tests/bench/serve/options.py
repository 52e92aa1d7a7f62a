"""How much a run measures."""

from __future__ import annotations

from dataclasses import dataclass

CLIENT_BATCH = 32
BULK_CLIENTS = 8


@dataclass(frozen=True, slots=True)
class Options:
    """Texts of a bulk run, rounds of each measurement, and seconds of those that go by time."""

    texts: int
    rounds: int
    small_s: float
    fairness_s: float
