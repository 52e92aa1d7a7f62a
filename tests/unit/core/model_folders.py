"""Folders that look like models: the JSON files are real, the weights are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONFIG = {
    "hidden_size": 8,
    "max_position_embeddings": 64,
    "vocab_size": 100,
    "architectures": ["BertModel"],
}
MODULES = [
    {"type": "sentence_transformers.models.Transformer", "path": ""},
    {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
    {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"},
]


def make_model(parent: Path, weights: str | None = "model.safetensors", **config: Any) -> Path:
    """A folder `little-model` whose config.json has `config` on top of a small BERT's."""
    folder = parent / "little-model"
    write_json(folder / "config.json", CONFIG | config)
    if weights is not None:
        (folder / weights).write_bytes(b"weights")
    return folder


def write_json(file: Path, value: object) -> None:
    """Write `value`, making the folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")
