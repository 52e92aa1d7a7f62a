"""What runs a model's forward pass. The batcher knows backends only by this trait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ragplane.core.errors import UnavailableError
from serve.encoder import Vectors

TokenIds = tuple[int, ...]


class ModelInput(NamedTuple):
    """The token ids of one input, special tokens included.

    `second_at` is where the second text of a pair starts (token type 1 from there); None: one text.
    `pooled` asks for one vector in place of the token vectors; it is for task `states` only.
    """

    ids: TokenIds
    second_at: int | None = None
    pooled: bool = False


class BackendDownError(UnavailableError):
    """The backend cannot run at all: no input is to blame."""


class Backend(Protocol):
    """A loaded model. `forward` is called from `streams` threads at a time.

    `packed` says what a batch costs: the sum of its lengths, or its longest length times its size.
    """

    name: str
    dtype: str
    packed: bool
    streams: int

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        """What the model's task gives for each input, float32, in input order and unpadded.

        Task `states`: the last hidden state [length, hidden] or, of a `pooled` input, its pooled
        vector [hidden]. Task `logits`: [labels]. Task `sparse`: term weights [vocabulary]. Raises
        ModelError when the pass as a whole fails.
        """
        ...

    def interrupt(self, after_s: float) -> None:
        """End the passes that have run for longer than `after_s`: by default, none can be."""
        return

    def close(self) -> None:
        """End what would outlive it: by default, nothing."""
        return
