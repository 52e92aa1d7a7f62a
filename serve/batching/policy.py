"""What is admitted, and which of the waiting inputs run next. Pure functions over a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serve.batching.cost import CostModel
from serve.batching.work import Lane


def admits(open_requests: int, open_of_flow: int, limit: int) -> bool:
    """Whether one more request may open.

    Past the limit there is a reserve of a quarter, for flows (a tenant in a lane) that hold next to
    nothing: who floods the server finds it full, and the others still get in.
    """
    if open_requests < limit:
        return True
    return open_requests < limit + limit // 4 and open_of_flow < limit // 16


def compose(
    lengths: Sequence[int], cost: CostModel, *, budget_tokens: float, max_inputs: int | None = None
) -> list[int]:
    """Indices of the next micro-batch. The first of `lengths` is the one whose turn it is.

    It always runs, so nothing starves, and the nearest lengths join it while the cost stays within
    `budget_tokens`. An input over the budget runs alone.
    """
    if not lengths:
        return []
    anchor = lengths[0]
    nearest = sorted(range(len(lengths)), key=lambda index: (abs(lengths[index] - anchor), index))
    chosen: list[int] = []
    longest, spent = 0, 0.0
    for index in nearest[:max_inputs]:
        spent = cost.grown(spent, longest, len(chosen), lengths[index])
        if chosen and spent > budget_tokens:
            break
        longest = max(longest, lengths[index])
        chosen.append(index)
    return chosen


def tokens_ahead(lane: Lane, waiting_tokens: Mapping[Lane, float], running_tokens: float) -> float:
    """Cost of what runs before a new request of `lane`: its own lane, and for bulk all lanes."""
    mine = waiting_tokens.get(lane, 0.0) if lane == "interactive" else sum(waiting_tokens.values())
    return running_tokens + mine
