"""Facts of config.json, as pure functions."""

from __future__ import annotations

from typing import Any

import pytest

from ragplane.core.errors import ModelError
from ragplane.core.model_config import (
    activation,
    hidden_size,
    labels,
    max_tokens,
    pad_id,
    require_native,
)


@pytest.mark.parametrize(
    ("config", "tokenizer", "sentence", "want"),
    [
        ({"model_type": "bert"}, {}, {}, 64),
        ({"model_type": "xlm-roberta", "max_position_embeddings": 514}, {}, {}, 512),
        ({"model_type": "roberta", "pad_token_id": 5}, {}, {}, 58),
        ({"model_type": "mpnet"}, {}, {}, 62),
        ({"model_type": "modernbert", "max_position_embeddings": 8192}, {}, {}, 8192),
        ({}, {"model_max_length": 16}, {}, 16),
        ({}, {"model_max_length": 1e30}, {}, 64),
        ({}, {"model_max_length": 16}, {"max_seq_length": 32}, 32),
        ({}, {}, {"max_seq_length": 900}, 64),
    ],
)
def test_longest_input_follows_positions_and_files(
    config: dict[str, Any], tokenizer: dict[str, Any], sentence: dict[str, Any], want: int
) -> None:
    assert max_tokens({"max_position_embeddings": 64} | config, sentence, tokenizer) == want


@pytest.mark.parametrize(
    ("config", "want"),
    [({"pad_token_id": 7}, 7), ({"model_type": "roberta"}, 1), ({"pad_token_id": None}, 0)],
)
def test_padding_id_is_that_of_the_configuration_or_the_family(
    config: dict[str, Any], want: int
) -> None:
    assert pad_id(config) == want


@pytest.mark.parametrize("key", ["hidden_size", "dim", "d_model", "n_embd"])
def test_width_has_a_name_in_each_family(key: str) -> None:
    assert hidden_size({key: 48}) == 48
    with pytest.raises(ModelError, match="no hidden_size"):
        hidden_size({})


def test_labels_are_named_or_counted() -> None:
    assert labels({"id2label": {"1": "yes", "0": "no"}}) == ("no", "yes")
    assert labels({"num_labels": 1}) == ("LABEL_0",)


@pytest.mark.parametrize(
    ("config", "sentence", "label_count", "want"),
    [
        ({}, {}, 1, "sigmoid"),
        ({}, {}, 3, "softmax"),
        ({"problem_type": "multi_label_classification"}, {}, 3, "sigmoid"),
        ({"sbert_ce_default_activation_function": "torch.nn.Identity"}, {}, 1, "identity"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.Sigmoid"}}, {}, 3, "sigmoid"),
        (
            {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}},
            {"activation_fn": "torch.nn.modules.linear.Identity"},
            1,
            "identity",
        ),
    ],
)
def test_activation_is_what_the_newest_file_says(
    config: dict[str, Any], sentence: dict[str, Any], label_count: int, want: str
) -> None:
    assert activation(config, sentence, label_count) == want


def test_unknown_activation_is_refused() -> None:
    with pytest.raises(ModelError, match=r"activation own\.Activation"):
        activation({}, {"activation_fn": "own.Activation"}, 1)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"auto_map": {"AutoModel": "modeling_own.Model"}}, "auto_map"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
    ],
)
def test_model_that_needs_other_code_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        require_native(config)
