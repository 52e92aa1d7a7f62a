"""What runs a model's forward pass. The batcher knows backends only by this trait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from serve.encoder import Vectors

TokenIds = tuple[int, ...]


class Backend(Protocol):
    """A loaded model. `forward` is called from one thread at a time."""

    name: str
    dtype: str

    def forward(self, inputs: Sequence[TokenIds]) -> list[Vectors]:
        """The last hidden state of each input, float32 [length, hidden], without padding.

        Raises ModelError when the forward pass as a whole fails.
        """
        ...
