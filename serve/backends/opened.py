"""A backend that is ready, with what calibration found out about it."""

from __future__ import annotations

from dataclasses import dataclass

from serve.backends.base import Backend
from serve.batching.cost import CostModel, Speed


@dataclass(frozen=True, slots=True)
class OpenedBackend:
    """`parity` is the smallest cosine of its outputs to float32; None: it is float32 itself.

    `calibration_s` is how long calibration took.
    """

    backend: Backend
    cost: CostModel
    speed: Speed
    micro_batch_tokens: int
    parity: float | None
    calibration_s: float
