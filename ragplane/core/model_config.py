"""What config.json says about a model. Pure functions over the parsed file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragplane.core.errors import ModelError
from ragplane.core.model_files import Activation

Config = Mapping[str, Any]

_HIDDEN_KEYS = ("hidden_size", "dim", "d_model", "n_embd")
_DEFAULT_POSITIONS = 512
_OFFSET_TYPES = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "data2vec-text")
_ACTIVATIONS: Mapping[str, Activation] = {
    "Sigmoid": "sigmoid",
    "Softmax": "softmax",
    "Identity": "identity",
}


def require_native(config: Config) -> None:
    """Raise ModelError for a model that needs code of its own, or is no encoder of one text."""
    if config.get("auto_map"):
        raise ModelError("its config.json asks for code of its own (auto_map), which is never run")
    if config.get("is_encoder_decoder"):
        raise ModelError("encoder-decoder models are not supported")


def architecture(config: Config) -> str:
    """The class that wrote the weights, such as BertForMaskedLM; empty when it is not said."""
    return str(next(iter(config.get("architectures") or []), ""))


def hidden_size(config: Config) -> int:
    """Width of a token vector. Raises ModelError if it is not said."""
    for key in _HIDDEN_KEYS:
        if key in config:
            return int(config[key])
    raise ModelError("config.json has no hidden_size")


def vocabulary_size(config: Config) -> int:
    """Rows of the embedding table. Raises ModelError if it is not said."""
    if "vocab_size" not in config:
        raise ModelError("config.json has no vocab_size")
    return int(config["vocab_size"])


def pad_id(config: Config) -> int:
    """The padding token; where none is said, 1 for the families that count positions from it."""
    value = config.get("pad_token_id")
    if value is not None:
        return int(value)
    return 1 if config.get("model_type") in _OFFSET_TYPES else 0


def max_tokens(config: Config, sentence: Config, tokenizer: Config) -> int:
    """Longest input, special tokens included.

    sentence_bert_config.json's `max_seq_length` rules, else tokenizer_config.json's
    `model_max_length`, and never more than the model has positions. RoBERTa and its kin count
    positions from after the padding id, and have so many fewer.
    """
    positions = int(config.get("max_position_embeddings") or _DEFAULT_POSITIONS)
    if config.get("model_type") in _OFFSET_TYPES:
        positions -= pad_id(config) + 1
    wanted = sentence.get("max_seq_length") or tokenizer.get("model_max_length") or positions
    return min(positions, int(wanted))


def labels(config: Config) -> tuple[str, ...]:
    """Names of the labels in their order. config.json leaves two unnamed ones out."""
    named = config.get("id2label")
    if named:
        return tuple(str(named[key]) for key in sorted(named, key=int))
    return tuple(f"LABEL_{number}" for number in range(int(config.get("num_labels", 2))))


def activation(config: Config, sentence: Config, label_count: int) -> Activation:
    """What turns logits into scores: what the files say, else sigmoid for one label or softmax.

    sentence-transformers has kept it in config_sentence_transformers.json (`activation_fn`), in
    config.json's `sentence_transformers`, and before version 4 in a key of config.json's own.
    """
    said = (
        sentence.get("activation_fn")
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
    )
    if said:
        name = str(said).rsplit(".", 1)[-1]
        if name not in _ACTIVATIONS:
            raise ModelError(f"activation {said} is not supported")
        return _ACTIVATIONS[name]
    if label_count == 1 or config.get("problem_type") == "multi_label_classification":
        return "sigmoid"
    return "softmax"
