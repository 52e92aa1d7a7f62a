"""What is admitted, and which of the waiting inputs run next. Pure functions over a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serve.batching.cost import CostModel
from serve.batching.fairness import Flow


def admits(open_requests: int, open_of_flow: int, limit: int) -> bool:
    """Whether one more request may open.

    Past the limit there is a reserve of a quarter, for flows (a tenant in a lane) that hold next to
    nothing: who floods the server finds it full, and the others still get in.
    """
    if open_requests < limit:
        return True
    return open_requests < limit + limit // 4 and open_of_flow < max(1, limit // 16)


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


def tokens_ahead(flow: Flow, waiting: Mapping[Flow, float], own_tokens: float) -> float:
    """Cost of what runs until `own_tokens` more of `flow` are done, by the shares that flows get.

    Tenants share their lane evenly, so a flow waits for as much of each other as it has itself. The
    bulk lane also waits for all that is interactive.
    """
    lane = [tokens for other, tokens in waiting.items() if other.lane == flow.lane]
    flows = len(lane) + (flow not in waiting)
    share = (waiting.get(flow, 0.0) + own_tokens) * flows
    before = sum(t for other, t in waiting.items() if other.lane == "interactive" != flow.lane)
    return before + min(sum(lane) + own_tokens, share)
