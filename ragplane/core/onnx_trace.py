"""Tracing a transformers model to an ONNX graph: the half of the export that needs torch.

A graph is accepted only if its output equals the model's own to `PARITY_TOLERANCE`.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime
import torch

from ragplane.core.errors import ModelError
from ragplane.core.models import Task
from ragplane.core.onnx_export import OPSET, OUTPUTS, scratch_prefix

PARITY_TOLERANCE = 1e-4
_PARITY_LENGTH = 160  # longer than the attention windows of ModernBERT
_PROTOBUF_LIMIT_BYTES = 1_900_000_000  # past it, the weights lie in a file beside the graph
# Families whose attention the optimizer of ONNX Runtime knows as BERT's.
_FUSED_TYPES = ("bert", "roberta", "xlm-roberta", "camembert", "distilbert", "mpnet", "electra")


def export(folder: Path, graph: Path, form: str) -> None:
    """Write the graph of the model in `folder` as `graph`; its folder comes whole or not at all.

    `form` is `ragplane.core.onnx_export.graph_form`. Raises ModelError if weights of the head are
    missing, or if no graph reproduces the model's output.
    """
    task, *splade = form.split("-")
    traced = TracedModel(_load(folder, cast(Task, task)), cast(Task, task), splade).eval()
    place = tempfile.TemporaryDirectory(dir=graph.parent.parent, prefix=scratch_prefix(graph))
    with place as scratch:
        graphs = [_trace(traced, Path(scratch) / "plain" / graph.name)]
        if traced.model.config.model_type in _FUSED_TYPES:
            graphs.insert(0, _fuse(graphs[0], traced.model.config))
        accepted = next((candidate for candidate in graphs if _equals(candidate, traced)), None)
        if accepted is None:
            raise ModelError("the exported graph does not reproduce the model's output")
        accepted.parent.replace(graph.parent)


class TracedModel(torch.nn.Module):
    """A transformers model as positional tensors in, one tensor out."""

    def __init__(self, model: Any, task: Task, splade: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.task = task
        self.splade = splade
        self.names = ["input_ids", "attention_mask"]
        if getattr(model.config, "type_vocab_size", 0) > 1:
            self.names.append("token_type_ids")

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        named = dict(zip(self.names, inputs, strict=True))
        output = self.model(**named)
        if self.task == "states":
            return cast(torch.Tensor, output.last_hidden_state)
        if self.task == "logits":
            return cast(torch.Tensor, output.logits)
        return splade_weights(output.logits, named["attention_mask"], *self.splade)


def splade_weights(
    logits: torch.Tensor, mask: torch.Tensor, strategy: str, activation: str
) -> torch.Tensor:
    """`SpladeHead` over logits [batch, length, vocabulary]: weights [batch, vocabulary]."""
    masked = logits * mask.unsqueeze(-1).to(logits.dtype)

    def weigh(values: torch.Tensor) -> torch.Tensor:
        weights = torch.log1p(torch.relu(values))
        return torch.log1p(weights) if activation == "log1p_relu" else weights

    if strategy == "sum":
        return weigh(masked).sum(dim=1)
    return weigh(masked.amax(dim=1))  # the weight rises with the logit, so the maximum may go first


def _load(folder: Path, task: Task) -> Any:
    from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification

    makers: Mapping[Task, Any] = {
        "states": AutoModel,
        "logits": AutoModelForSequenceClassification,
        "sparse": AutoModelForMaskedLM,
    }
    model, loading = makers[task].from_pretrained(
        folder,
        attn_implementation="eager",
        use_safetensors=True,
        dtype=torch.float32,
        output_loading_info=True,
    )
    # The pooler feeds heads only; many encoders are saved without it.
    unused = "pooler." if task == "states" else "\0"
    missing = sorted(key for key in loading["missing_keys"] if unused not in key)
    if missing:
        raise ModelError(f"the weights lack {missing[0]}")
    model.config.use_cache = False
    return model


def _trace(traced: TracedModel, plain: Path) -> Path:
    plain.parent.mkdir()
    example = tuple(torch.ones(2, 16, dtype=torch.long) for _ in traced.names)
    output = OUTPUTS[traced.task][0]
    axes = {name: {0: "batch", 1: "length"} for name in traced.names}
    axes[output] = {0: "batch", 1: "length"} if traced.task == "states" else {0: "batch"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of branches on shapes: the parity check has others
        torch.onnx.export(
            traced,
            example,
            str(plain),
            input_names=traced.names,
            output_names=[output],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    return plain


def _fuse(plain: Path, config: Any) -> Path:
    """The graph with attention and normalisation as single nodes."""
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    options = FusionOptions("bert")
    # With this fusion the attention nodes lose the mask, and every vector is wrong.
    options.enable_embed_layer_norm = False
    optimized = optimize_model(
        str(plain),
        model_type="bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
        optimization_options=options,
        opt_level=0,
    )
    fused = plain.parent.parent / "fused" / plain.name
    fused.parent.mkdir()
    large = sum(file.stat().st_size for file in plain.parent.iterdir()) > _PROTOBUF_LIMIT_BYTES
    optimized.save_model_to_file(str(fused), use_external_data_format=large)
    return fused


def _equals(graph: Path, traced: TracedModel) -> bool:
    """Whether the graph equals the model on a padded batch, at the positions that count."""
    feed = _parity_feed(traced)
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    got = session.run(None, feed)[0]
    with torch.no_grad():
        want = traced(*(torch.from_numpy(feed[name]) for name in traced.names)).numpy()
    difference = np.abs(got - want)
    if traced.task == "states":
        difference = difference[feed["attention_mask"] > 0]
    return bool(difference.max() <= PARITY_TOLERANCE)


def _parity_feed(traced: TracedModel) -> dict[str, Any]:
    config = traced.model.config
    length = min(_PARITY_LENGTH, getattr(config, "max_position_embeddings", 512) - 2)
    random = np.random.default_rng(0)
    ids = random.integers(3, config.vocab_size, (3, length))
    mask = np.ones_like(ids)
    mask[1, length // 3 :] = 0
    mask[2, length // 2 :] = 0
    ids[mask == 0] = getattr(config, "pad_token_id", None) or 0
    types = np.zeros_like(ids)
    types[:, length // 4 :] = 1
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return {name: feed[name] for name in traced.names}


if __name__ == "__main__":
    # Told to end, it removes its scratch files first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        export(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    except ModelError as error:
        sys.exit(str(error))
