"""A backend that can be told to fail, and batchers around it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ragplane.core.errors import (
    ModelError,
)
from serve.backends.base import Backend, BackendDownError, ModelInput, TokenIds
from serve.batching.batcher import Batcher
from serve.batching.cost import CostModel, Speed
from serve.batching.queue import Limits
from serve.batching.work import Work
from serve.encoder import Vectors
from serve.pooling import pool

BAD, NOT_FINITE, DEADLY, DOWN = 666, 667, 668, 669


class StubBackend(Backend):
    """Token vectors that repeat the ids, or their mean.

    `gate` holds every forward pass while it is cleared.
    """

    name = "stub"
    dtype = "float32"
    packed = False
    streams = 1

    def __init__(self) -> None:
        self.batches: list[list[TokenIds]] = []
        self.memory_for = 1000
        self.gate = threading.Event()
        self.gate.set()

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        batch = [item.ids for item in inputs]
        self.batches.append(batch)
        self.gate.wait(10)
        if any(DEADLY in ids for ids in batch):
            raise SystemExit("the driver is gone")
        if any(DOWN in ids for ids in batch):
            raise BackendDownError("its process cannot be started")
        if len(batch) > self.memory_for:
            raise MemoryError
        if any(BAD in ids for ids in batch):
            raise ModelError("bad input")
        states = [_state(ids) for ids in batch]
        return [
            pool(state, "mean") if item.pooled else state
            for item, state in zip(inputs, states, strict=True)
        ]


def _state(ids: TokenIds) -> Vectors:
    column = np.array(ids, np.float32)[:, None]
    return np.where(column == NOT_FINITE, np.nan, column).astype(np.float32)


def work(*ids: int) -> Work[float]:
    return Work(ModelInput(ids), lambda tokens: float(tokens.sum()))


def make(backend: StubBackend, max_requests: int, limits: Limits, **changes: Any) -> Batcher:
    cost, speed = CostModel(packed=False), Speed(100_000)
    return Batcher(
        backend, max_requests=max_requests, limits=limits, cost=cost, speed=speed, **changes
    )


def queued(batcher: Batcher) -> int:
    return sum(batcher.queue_sizes.values())


async def until(condition: object) -> None:
    """Wait for a callable to become true, ten seconds at most."""
    assert callable(condition)
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("the condition did not become true")
