"""What the BERT block family puts on top of its encoder: classifiers and masked-language heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from ragplane.core.models import ModelFiles, SpladeHead
from serve.backends.bert_files import Weights
from serve.backends.linear import make_linear
from serve.backends.ops import Norm, Ops
from serve.backends.packed_bert import PackedBert, PackedInputs
from serve.backends.splade import term_weights


class Head(Protocol):
    """Runs the encoder and what stands on it: float32, one tensor for each input."""

    def __call__(self, inputs: PackedInputs, lengths: Sequence[int]) -> Sequence[Tensor]: ...


class States:
    """No head: the last hidden states [length, hidden]."""

    def __init__(self, encoder: PackedBert) -> None:
        self._encoder = encoder

    def __call__(self, inputs: PackedInputs, lengths: Sequence[int]) -> Sequence[Tensor]:
        states = self._encoder.states(inputs)[: sum(lengths)]
        return torch.split_with_sizes(states, list(lengths))


class Classifier:
    """Logits [labels] of the first token: a dense layer, its activation, and the classifier."""

    def __init__(self, encoder: PackedBert, weights: Weights, device: str) -> None:
        self._encoder = encoder
        dense, classifier, self._activation = _CLASSIFIERS[encoder.facts.names.prefix]
        self._dense = make_linear(*weights.pair(dense, None, encoder.hidden), torch.float32, device)
        self._classifier = make_linear(*weights.pair(classifier, None, None), torch.float32, device)

    def __call__(self, inputs: PackedInputs, lengths: Sequence[int]) -> Sequence[Tensor]:
        first = self._encoder.first_states(inputs)
        return self._classifier(self._activation(self._dense(first))).unbind()


class TermWeights:
    """Term weights [vocabulary] out of the masked-language head, as `SpladeHead` says."""

    def __init__(
        self,
        encoder: PackedBert,
        weights: Weights,
        splade: SpladeHead,
        ops: Ops,
    ) -> None:
        facts, hidden = encoder.facts, encoder.hidden
        names = facts.names
        self._encoder = encoder
        self._splade = splade
        self._dtype = ops.dtype
        self._activation = facts.activation
        dense = weights.pair(names.masked_dense, hidden, hidden)
        self._dense = make_linear(*dense, ops.dtype, ops.device)
        norm = weights.pair(names.masked_norm, hidden)
        self._norm = Norm(*norm, facts.norm_epsilon, ops.device)
        decoder = weights.find(names.masked_decoder)
        self._decoder = make_linear(
            encoder.words if decoder is None else decoder,
            weights.get(names.masked_bias),
            ops.dtype,
            ops.device,
        )

    def __call__(self, inputs: PackedInputs, lengths: Sequence[int]) -> Sequence[Tensor]:
        states = self._encoder.states(inputs)[: sum(lengths)].to(self._dtype)
        rows = self._norm(self._dense.activated(states, self._activation))
        # One input at a time: the logits of a whole batch are vocabulary-wide.
        parts = torch.split_with_sizes(rows, list(lengths))
        return [term_weights(self._decoder(part), self._splade) for part in parts]


def make_head(files: ModelFiles, encoder: PackedBert, weights: Weights, ops: Ops) -> Head:
    """The head for the task of `files`. Raises ModelError for a missing tensor."""
    if files.task == "logits":
        return Classifier(encoder, weights, ops.device)
    if files.task == "sparse":
        return TermWeights(encoder, weights, files.splade or SpladeHead(), ops)
    return States(encoder)


_CLASSIFIERS = {
    "bert": ("pooler.dense", "classifier", torch.tanh),
    "roberta": ("classifier.dense", "classifier.out_proj", torch.tanh),
    "distilbert": ("pre_classifier", "classifier", torch.relu),
}
