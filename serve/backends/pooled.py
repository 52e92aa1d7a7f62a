"""Pooling where the model runs: of an embedding only one vector leaves its process."""

from __future__ import annotations

from collections.abc import Sequence

from ragplane.core.models import Pooling
from serve.backends.base import Backend, ModelInput
from serve.encoder import Vectors
from serve.pooling import pool


class PoolingBackend(Backend):
    """A backend of task `states` that gives token vectors, with the answers to `pooled` inputs."""

    def __init__(self, backend: Backend, pooling: Pooling) -> None:
        """`backend` is closed with this one."""
        self.name, self.dtype = backend.name, backend.dtype
        self.packed, self.streams = backend.packed, backend.streams
        self._backend = backend
        self._pooling = pooling

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        """As `Backend.forward`. A pooled vector shares no memory with token vectors."""
        rows = self._backend.forward([ModelInput(item.ids, item.second_at) for item in inputs])
        return [
            pool(states, self._pooling) if item.pooled else states
            for item, states in zip(inputs, rows, strict=True)
        ]

    def interrupt(self, after_s: float) -> None:
        """As `Backend.interrupt`."""
        self._backend.interrupt(after_s)

    def close(self) -> None:
        """As `Backend.close`."""
        self._backend.close()
