"""Tiny models with random weights, one of each family, saved as folders like real ones.

Each `save_*` writes config.json, model.safetensors and tokenizer.json, and gives the folder back.
The weights follow from the seed alone, so a graph that was exported once is found again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from tokenizers import Tokenizer, processors

from ragplane.core.models import Task
from tests.unit.serve.tiny_tokenizers import byte_pairs, pair_template, unigram, word_piece

HIDDEN = 32
LENGTH = 64
SIZES: dict[str, Any] = {
    "hidden_size": HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": LENGTH,
    "initializer_range": 0.2,
}


class SaveFamily(Protocol):
    """Saves a model with the head of `task`, `labels` wide where it classifies."""

    def __call__(self, folder: Path, *, task: Task = "states", labels: int = 1) -> Path: ...


def save_bert(folder: Path, *, task: Task = "states", labels: int = 1) -> Path:
    """Token types, absolute positions from 0, [CLS] a [SEP] b [SEP]."""
    from transformers import BertConfig

    tokenizer = word_piece(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))
    tokenizer.post_processor = pair_template(tokenizer, "[CLS]", "[SEP]", "[SEP] $B:1 [SEP]:1")
    return save(folder, tokenizer, BertConfig, "[PAD]", task, labels, **SIZES)


def save_distilbert(folder: Path, *, task: Task = "states", labels: int = 1) -> Path:
    """As BERT without token types."""
    from transformers import DistilBertConfig

    tokenizer = word_piece(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))
    tokenizer.post_processor = pair_template(tokenizer, "[CLS]", "[SEP]", "[SEP] $B:1 [SEP]:1")
    sizes: dict[str, Any] = {
        "dim": HIDDEN,
        "n_layers": 2,
        "n_heads": 4,
        "hidden_dim": 64,
        "max_position_embeddings": LENGTH,
        "initializer_range": 0.2,
    }
    return save(folder, tokenizer, DistilBertConfig, "[PAD]", task, labels, **sizes)


def save_mpnet(folder: Path, *, task: Task = "states", labels: int = 1) -> Path:
    """Positions from 2, a relative attention bias."""
    from transformers import MPNetConfig

    tokenizer = word_piece(("<s>", "<pad>", "</s>", "[UNK]", "<mask>"))
    tokenizer.post_processor = pair_template(tokenizer, "<s>", "</s>", "</s> </s> $B </s>")
    sizes = SIZES | {"max_position_embeddings": LENGTH + 2}
    return save(folder, tokenizer, MPNetConfig, "<pad>", task, labels, **sizes)


def save_roberta(folder: Path, *, task: Task = "states", labels: int = 1) -> Path:
    """Byte-level BPE, positions from 2, <s> a </s></s> b </s>."""
    from transformers import RobertaConfig

    tokenizer = byte_pairs(("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    sizes = SIZES | {"max_position_embeddings": LENGTH + 2, "type_vocab_size": 1}
    return save(folder, tokenizer, RobertaConfig, "<pad>", task, labels, **sizes)


def save_xlm_roberta(folder: Path, *, task: Task = "states", labels: int = 1) -> Path:
    """A unigram vocabulary, positions from 2."""
    from transformers import XLMRobertaConfig

    tokenizer = unigram(("<s>", "<pad>", "</s>", "<unk>"))
    tokenizer.post_processor = pair_template(tokenizer, "<s>", "</s>", "</s> </s> $B </s>")
    sizes = SIZES | {"max_position_embeddings": LENGTH + 2, "type_vocab_size": 1}
    return save(folder, tokenizer, XLMRobertaConfig, "<pad>", task, labels, **sizes)


def save_modernbert(folder: Path, *, task: Task = "states", labels: int = 1) -> Path:
    """Rotary positions; every other layer sees a window of 16 tokens."""
    from transformers import ModernBertConfig

    tokenizer = byte_pairs(("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"))
    tokenizer.post_processor = pair_template(tokenizer, "[CLS]", "[SEP]", "[SEP] $B [SEP]")
    sizes = SIZES | {"global_attn_every_n_layers": 2, "local_attention": 16}
    ends = {"cls_token_id": 0, "bos_token_id": 0, "sep_token_id": 1, "eos_token_id": 1}
    return save(folder, tokenizer, ModernBertConfig, "[PAD]", task, labels, **sizes, **ends)


def save_qwen2(folder: Path, *, task: Task = "states", labels: int = 1) -> Path:
    """A causal decoder, grouped keys, ended by <|endoftext|>; pooled at the last token."""
    from transformers import Qwen2Config

    return _save_decoder(folder, Qwen2Config, task, labels)


def save_qwen3(folder: Path, *, task: Task = "states", labels: int = 1) -> Path:
    """As Qwen2 with normalised queries and keys."""
    from transformers import Qwen3Config

    return _save_decoder(folder, Qwen3Config, task, labels, head_dim=8)


FAMILIES: Mapping[str, SaveFamily] = {
    "bert": save_bert,
    "roberta": save_roberta,
    "xlm-roberta": save_xlm_roberta,
    "mpnet": save_mpnet,
    "distilbert": save_distilbert,
    "modernbert": save_modernbert,
    "qwen2": save_qwen2,
    "qwen3": save_qwen3,
}


def write_sentence_files(
    folder: Path,
    *,
    pooling: str = "mean",
    dense: Sequence[tuple[int, str]] = (),
    normalize: bool = True,
    prompts: Mapping[str, str] | None = None,
    default_prompt_name: str | None = None,
    max_seq_length: int | None = None,
) -> Path:
    """Add modules.json and what it names. `dense` holds (outputs, activation such as Tanh).

    `pooling` is sentence-transformers' name: cls, mean, max, lasttoken, ...
    """
    kinds = ["Transformer", "Pooling", *["Dense"] * len(dense), *["Normalize"] * normalize]
    paths = ["", *(f"{number}_{kind}" for number, kind in enumerate(kinds) if number)]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    write_json(folder / "modules.json", modules)
    mode = {"embedding_dimension": HIDDEN, "pooling_mode": pooling, "include_prompt": True}
    write_json(folder / "1_Pooling/config.json", mode)
    width = HIDDEN
    for number, (outputs, activation) in enumerate(dense):
        _write_dense(folder / paths[2 + number], width, outputs, activation, seed=number)
        width = outputs
    if normalize:
        write_json(folder / paths[-1] / "config.json", {})
    if max_seq_length is not None:
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_seq_length})
    named = {"prompts": dict(prompts or {}), "default_prompt_name": default_prompt_name}
    write_json(folder / "config_sentence_transformers.json", named)
    return folder


def write_splade_files(folder: Path, *, strategy: str = "max", activation: str = "relu") -> Path:
    """Add modules.json of a SPLADE model to a folder with a masked-LM head."""
    types = ("MLMTransformer", ""), ("SpladePooling", "1_SpladePooling")
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"sentence_transformers.sparse_encoder.models.{kind}",
        }
        for number, (kind, path) in enumerate(types)
    ]
    write_json(folder / "modules.json", modules)
    pooling = {"pooling_strategy": strategy, "activation_function": activation}
    write_json(folder / "1_SpladePooling/config.json", pooling)
    write_json(folder / "config_sentence_transformers.json", {"model_type": "SparseEncoder"})
    return folder


def write_json(file: Path, value: object) -> None:
    """Write `value`, making the folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def update_json(file: Path, **values: object) -> None:
    """Change keys of a JSON object in place."""
    old = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    write_json(file, old | values)


def save(
    folder: Path,
    tokenizer: Tokenizer,
    config: Callable[..., Any],
    pad: str,
    task: Task,
    labels: int,
    **values: Any,
) -> Path:
    """Build a model of the configuration with the head of `task`, and save all of it."""
    import torch
    from transformers import (
        AutoModel,
        AutoModelForMaskedLM,
        AutoModelForSequenceClassification,
        PreTrainedTokenizerFast,
    )

    makers = {
        "states": AutoModel,
        "logits": AutoModelForSequenceClassification,
        "sparse": AutoModelForMaskedLM,
    }
    built = config(
        vocab_size=tokenizer.get_vocab_size(),
        pad_token_id=tokenizer.token_to_id(pad),
        num_labels=labels,
        **values,
    )
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(7)
        model = makers[task].from_config(built, dtype=torch.float32)
        _randomize(model)
    model.save_pretrained(folder)
    names = ["input_ids", "attention_mask"]
    if getattr(built, "type_vocab_size", 0) > 1:
        names.append("token_type_ids")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        model_max_length=LENGTH,
        model_input_names=names,
    ).save_pretrained(folder)
    return folder


def _randomize(model: Any) -> None:
    """Give biases and norms values too: at 0 and 1 they could be dropped unseen."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)


def _save_decoder(
    folder: Path, config: Callable[..., Any], task: Task, labels: int, **values: Any
) -> Path:
    tokenizer = byte_pairs(("<|endoftext|>", "<|pad|>"))
    end = ("<|endoftext|>", 0)
    tokenizer.post_processor = processors.TemplateProcessing(
        f"$A {end[0]}", f"$A $B {end[0]}", [end]
    )
    sizes = SIZES | {"num_key_value_heads": 2} | values
    return save(folder, tokenizer, config, "<|pad|>", task, labels, **sizes)


def _write_dense(folder: Path, inputs: int, outputs: int, activation: str, seed: int) -> None:
    from safetensors.numpy import save_file

    random = np.random.default_rng(seed)
    weight = random.normal(0, 0.3, (outputs, inputs)).astype(np.float32)
    bias = random.normal(0, 0.3, outputs).astype(np.float32)
    folder.mkdir(parents=True)
    save_file({"linear.weight": weight, "linear.bias": bias}, folder / "model.safetensors")
    package = "linear" if activation == "Identity" else "activation"
    config = {
        "in_features": inputs,
        "out_features": outputs,
        "bias": True,
        "activation_function": f"torch.nn.modules.{package}.{activation}",
    }
    write_json(folder / "config.json", config)
