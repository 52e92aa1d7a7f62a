"""Inputs as the rectangles that padded backends take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragplane.core.models import Task
from serve.backends.base import ModelInput
from serve.encoder import Vectors


def pad(inputs: Sequence[ModelInput], pad_id: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids and attention mask, int64 [n, longest]. RoBERTa counts positions past the padding id."""
    ids = np.full((len(inputs), max(len(item.ids) for item in inputs)), pad_id, np.int64)
    mask = np.zeros_like(ids)
    for row, item in enumerate(inputs):
        ids[row, : len(item.ids)] = item.ids
        mask[row, : len(item.ids)] = 1
    return ids, mask


def graph_inputs(
    inputs: Sequence[ModelInput], pad_id: int, *, with_types: bool
) -> dict[str, NDArray[np.int64]]:
    """What an exported graph is fed."""
    ids, mask = pad(inputs, pad_id)
    feed = {"input_ids": ids, "attention_mask": mask}
    if with_types:
        feed["token_type_ids"] = token_types(inputs, ids.shape[1])
    return feed


def unpadded(rows: Vectors, inputs: Sequence[ModelInput], task: Task) -> list[Vectors]:
    """The output of a graph [n, ...] as one array for each input, token states without padding."""
    if task == "states":
        return [row[: len(item.ids)] for row, item in zip(rows, inputs, strict=True)]
    return list(rows)


def token_types(inputs: Sequence[ModelInput], length: int) -> NDArray[np.int64]:
    """Int64 [n, length]: 1 from where the second text of a pair starts."""
    types = np.zeros((len(inputs), length), np.int64)
    for row, item in enumerate(inputs):
        if item.second_at is not None:
            types[row, item.second_at :] = 1
    return types
