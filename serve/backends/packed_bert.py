"""The forward pass of the BERT block family over packed inputs: rows [tokens, hidden], no padding.

Blocks: self-attention, then two linear layers, each with a residual and a norm after it
(Devlin et al. 2018, Liu et al. 2019, Sanh et al. 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ragplane.core.errors import ModelError
from serve.backends.attention import Attend
from serve.backends.base import ModelInput
from serve.backends.bert_files import BertFacts, Weights
from serve.backends.linear import Activation, Linear, make_linear, stepped
from serve.backends.ops import Norm, Ops


@dataclass(frozen=True, slots=True)
class PackedInputs:
    """Inputs one after the other: ids, positions and token types int64 [rows].

    Rows beyond the inputs' tokens belong to nobody: they make the count one that `stepped` gives.
    `starts` int64 [n]: the first row of each input. `types` is None where all are 0.
    """

    ids: Tensor
    positions: Tensor
    types: Tensor | None
    starts: Tensor
    attend: Attend


@dataclass(frozen=True, slots=True)
class Block:
    """One layer of the encoder. `projected` gives queries, keys and values side by side.

    Products are computed in `dtype`, sums and norms in float32: with rows that are rounded in
    between, the cosine to float32 of one text in a thousand falls below 0.9999.
    """

    ops: Ops
    activation: Activation
    projected: Linear
    attended: Linear
    attended_norm: Norm
    up: Linear
    down: Linear
    norm: Norm

    def __call__(
        self, rows: Tensor, rounded: Tensor, attend: Attend, kept: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """All rows, or only the rows `kept`, after this layer: in float32, and `rounded` to the
        dtype of products."""
        context = attend(self.projected(rounded))
        if kept is not None:
            context, rows = context.index_select(0, kept), rows.index_select(0, kept)
        add_norm = self.ops.add_norm
        rows, rounded = add_norm(rows, self.attended(context), self.attended_norm)
        wide = self.up.activated(rounded, self.activation)
        return add_norm(rows, self.down(wide), self.norm)


class PackedBert:
    """Embeddings and blocks of one model."""

    def __init__(self, weights: Weights, facts: BertFacts, ops: Ops) -> None:
        """Read the encoder out of `weights`. Raises ModelError for a missing tensor."""
        self.facts = facts
        self._ops = ops
        self.words = weights.get("embeddings.word_embeddings.weight").to(ops.device)
        self.hidden = hidden = self.words.shape[1]
        if hidden % facts.heads:
            raise ModelError(f"{facts.heads} attention heads do not divide a width of {hidden}")
        positions = weights.get("embeddings.position_embeddings.weight")
        types = weights.find("embeddings.token_type_embeddings.weight")
        self._pair_types = None
        if types is not None:  # type 0 is the same for every row: part of the position
            positions = positions + types[0]
            self._pair_types = (types - types[0]).to(ops.device, torch.float32)
        self._positions = positions.to(ops.device, torch.float32)
        norm = weights.pair("embeddings.LayerNorm", hidden)
        self._norm = Norm(*norm, facts.norm_epsilon, ops.device)
        self._blocks = [_block(weights, facts, layer, hidden, ops) for layer in range(facts.layers)]

    def pack(self, inputs: Sequence[ModelInput]) -> PackedInputs:
        """Lay `inputs` out one after the other; ascending lengths attend fastest."""
        device = self._ops.device
        lengths = np.array([len(item.ids) for item in inputs])
        stops = lengths.cumsum()
        starts = stops - lengths
        tokens = int(stops[-1])
        ids = np.fromiter((token for item in inputs for token in item.ids), np.int64, tokens)
        positions = _positions(ids, starts, lengths, self.facts)
        rows = stepped(tokens)
        types = _types(inputs, starts, rows) if self.facts.pair_types else None
        heads = self.facts.heads
        return PackedInputs(
            ids=torch.from_numpy(np.resize(ids, rows)).to(device),
            positions=torch.from_numpy(np.resize(positions, rows)).to(device),
            types=None if types is None else torch.from_numpy(types).to(device),
            starts=torch.from_numpy(starts).to(device),
            attend=self._ops.attention(lengths.tolist(), heads, self.hidden // heads),
        )

    def states(self, inputs: PackedInputs) -> Tensor:
        """Last hidden states, float32 [rows, hidden]."""
        return self._run(inputs, None)

    def first_states(self, inputs: PackedInputs) -> Tensor:
        """Last hidden state of each input's first token, float32 [n, hidden]."""
        return self._run(inputs, inputs.starts)

    def _run(self, inputs: PackedInputs, kept: Tensor | None) -> Tensor:
        rows = self._embed(inputs)
        rounded = rows.to(self._ops.dtype)
        last = self._blocks[-1]
        for block in self._blocks[:-1]:
            rows, rounded = block(rows, rounded, inputs.attend, None)
        return last(rows, rounded, inputs.attend, kept)[0]

    def _embed(self, inputs: PackedInputs) -> Tensor:
        rows = self.words.index_select(0, inputs.ids).float()
        rows += self._positions.index_select(0, inputs.positions)
        if inputs.types is not None and self._pair_types is not None:
            rows += self._pair_types.index_select(0, inputs.types)
        return self._norm(rows)


def _block(weights: Weights, facts: BertFacts, layer: int, hidden: int, ops: Ops) -> Block:
    names = facts.names

    def pair(name: str, *shape: int | None) -> tuple[Tensor, Tensor]:
        return weights.pair(f"{names.layer}.{layer}.{name}", *shape)

    def linear(weight: Tensor, bias: Tensor) -> Linear:
        return make_linear(weight, bias, ops.dtype, ops.device)

    def norm(name: str) -> Norm:
        return Norm(*pair(name, hidden), facts.norm_epsilon, ops.device)

    parts = [pair(name, hidden, hidden) for name in (names.query, names.key, names.value)]
    up = pair(names.up, None, hidden)
    return Block(
        ops=ops,
        activation=facts.activation,
        projected=linear(
            torch.cat([weight for weight, _ in parts]), torch.cat([bias for _, bias in parts])
        ),
        attended=linear(*pair(names.attended, hidden, hidden)),
        attended_norm=norm(names.attended_norm),
        up=linear(*up),
        down=linear(*pair(names.down, hidden, len(up[1]))),
        norm=norm(names.norm),
    )


def _positions(
    ids: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64], facts: BertFacts
) -> NDArray[np.int64]:
    if not facts.first_position:
        return np.arange(len(ids)) - np.repeat(starts, lengths)
    # These families count what is not padding, and give padding the position of its own id.
    counted = ids != facts.pad_id
    before = np.concatenate([[0], counted.cumsum()])
    return np.where(counted, before[1:] - np.repeat(before[starts], lengths), 0) + facts.pad_id


def _types(
    inputs: Sequence[ModelInput], starts: NDArray[np.int64], total: int
) -> NDArray[np.int64] | None:
    if all(item.second_at is None for item in inputs):
        return None
    types = np.zeros(total, np.int64)
    for item, start in zip(inputs, starts, strict=True):
        if item.second_at is not None:
            types[start + item.second_at : start + len(item.ids)] = 1
    return types
