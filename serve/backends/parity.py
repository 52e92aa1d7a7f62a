"""Whether a backend in a lower precision is still exact enough. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ragplane.core.model_files import Task
from ragplane.core.models import ModelFiles
from serve.encoder import Vectors
from serve.heads import EmbeddingHead
from serve.pooling import activate, normalize

# States and sparse: cosine to float32. Logits: 1 less the largest difference of a score.
GATES: Mapping[Task, float] = {"states": 0.9999, "sparse": 0.9999, "logits": 0.99}


def parity(files: ModelFiles, got: Sequence[Vectors], want: Sequence[Vectors]) -> float:
    """How near the outputs of one backend are to those of another, for the worst input."""
    if files.task == "logits":
        difference = np.abs(_scores(files, got) - _scores(files, want)).max()
        return float(1.0 - difference)
    if files.task == "states":
        head = EmbeddingHead(files)
        got, want = [head(states) for states in got], [head(states) for states in want]
    cosines = normalize(np.stack(got)) * normalize(np.stack(want))
    return float(cosines.sum(axis=1).min())


def passes(task: Task, value: float | None) -> bool:
    """Whether a parity is good enough. None stands for float32 itself."""
    return value is None or value >= GATES[task]


def _scores(files: ModelFiles, logits: Sequence[Vectors]) -> Vectors:
    return activate(np.stack(logits).astype(np.float32), files.activation)
