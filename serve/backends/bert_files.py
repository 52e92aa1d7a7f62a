"""The BERT block family on disk: what each member calls its weights and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from ragplane.core.errors import ModelError
from serve.backends.linear import Activation

_ACTIVATIONS: Mapping[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
}
# Names of old TensorFlow checkpoints.
_OLD_NAMES = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


@dataclass(frozen=True, slots=True)
class Names:
    """Where a family keeps its weights. `layer` and what follows it name one block's parts."""

    prefix: str
    layer: str
    query: str
    key: str
    value: str
    attended: str
    attended_norm: str
    up: str
    down: str
    norm: str
    masked_dense: str
    masked_norm: str
    masked_decoder: str
    masked_bias: str


def _bert_names(prefix: str, masked: tuple[str, str, str, str]) -> Names:
    return Names(
        prefix,
        "encoder.layer",
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "attention.output.LayerNorm",
        "intermediate.dense",
        "output.dense",
        "output.LayerNorm",
        *masked,
    )


_BERT = _bert_names(
    "bert",
    (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder.weight",
        "cls.predictions.bias",
    ),
)
_ROBERTA = _bert_names(
    "roberta",
    ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder.weight", "lm_head.bias"),
)
_DISTILBERT = Names(
    "distilbert",
    "transformer.layer",
    "attention.q_lin",
    "attention.k_lin",
    "attention.v_lin",
    "attention.out_lin",
    "sa_layer_norm",
    "ffn.lin1",
    "ffn.lin2",
    "output_layer_norm",
    "vocab_transform",
    "vocab_layer_norm",
    "vocab_projector.weight",
    "vocab_projector.bias",
)
_FAMILIES: Mapping[str, Names] = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "distilbert": _DISTILBERT,
}


@dataclass(frozen=True, slots=True)
class BertFacts:
    """What the forward pass needs of config.json.

    `first_position` is the position of an input's first token. `pair_types`: the second text of a
    pair has token type 1. `pad_id` matters to the families that do not count it as a position.
    """

    names: Names
    layers: int
    heads: int
    activation: Activation
    norm_epsilon: float
    first_position: int
    pair_types: bool
    pad_id: int


def bert_facts(config: Mapping[str, Any]) -> BertFacts | None:
    """Facts of a model of the BERT block family; None for every other model, or variant of one."""
    names = _FAMILIES.get(config.get("model_type", ""))
    activation = _ACTIVATIONS.get(config.get("activation") or config.get("hidden_act", "gelu"))
    usual = config.get("position_embedding_type", "absolute") == "absolute"
    if names is None or activation is None or not usual or config.get("is_decoder"):
        return None
    if names is _DISTILBERT:
        layers, heads = int(config.get("n_layers", 6)), int(config.get("n_heads", 12))
        return BertFacts(names, layers, heads, activation, 1e-12, 0, False, 0)
    pad_id = int(config.get("pad_token_id", 1 if names is _ROBERTA else 0) or 0)
    return BertFacts(
        names=names,
        layers=int(config.get("num_hidden_layers", 12)),
        heads=int(config.get("num_attention_heads", 12)),
        activation=activation,
        norm_epsilon=float(config.get("layer_norm_eps", 1e-12)),
        first_position=pad_id + 1 if names is _ROBERTA else 0,
        pair_types=int(config.get("type_vocab_size", 2)) > 1,
        pad_id=pad_id,
    )


class Weights:
    """Tensors by name, out of the safetensors files of a folder; read when asked for."""

    def __init__(self, folder: Path, prefix: str) -> None:
        """Open the files. `prefix` is what a model with a head puts before the encoder's names.

        Raises ModelError.
        """
        self._folder = folder
        self._prefix = prefix
        single = folder / "model.safetensors"
        files = [single] if single.is_file() else sorted(folder.glob("*.safetensors"))
        try:
            opened: list[Any] = [safe_open(file, "pt") for file in files]
        except (OSError, SafetensorError) as error:
            raise ModelError(f"weights in {folder}: {error}") from error
        self._file_of = {name: file for file in opened for name in sorted(file.keys())}

    def find(self, name: str) -> Tensor | None:
        """The tensor, with or without the encoder's prefix; None where there is none."""
        old = name
        for new_end, old_end in _OLD_NAMES.items():
            old = old.replace(new_end, old_end)
        for full in (name, f"{self._prefix}.{name}", old, f"{self._prefix}.{old}"):
            if full in self._file_of:
                tensor: Tensor = self._file_of[full].get_tensor(full)
                return tensor
        return None

    def get(self, name: str) -> Tensor:
        """The tensor. Raises ModelError where there is none."""
        tensor = self.find(name)
        if tensor is None:
            raise ModelError(f"weights in {self._folder}: no tensor {name}")
        return tensor

    def pair(self, name: str, *shape: int | None) -> tuple[Tensor, Tensor]:
        """`name.weight`, of this shape (None: of any size), and `name.bias`, one for each row.

        Raises ModelError.
        """
        weight, bias = self.get(f"{name}.weight"), self.get(f"{name}.bias")
        sizes = [
            size if want is None else want for size, want in zip(weight.shape, shape, strict=False)
        ]
        if [*weight.shape] != sizes or len(sizes) != len(shape) or bias.shape != weight.shape[:1]:
            found = f"{tuple(weight.shape)} with a bias {tuple(bias.shape)}"
            raise ModelError(f"weights in {self._folder}: {name} is {found}, not {shape}")
        return weight, bias
