"""A cross-encoder to measure with: the bundled encoder under a random head. Made once."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.bench.processes import ROOT
from tests.bench.texts import model_folder

FOLDER = ROOT / ".cache" / "bench" / "cross-encoder"
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
_HEAD_DEVIATION = 2.0  # wide enough that scores differ


def cross_encoder() -> Path:
    """Its folder: 6 layers, 384 wide, one label."""
    if (FOLDER / "model.safetensors").exists():
        return FOLDER
    import torch
    from transformers import BertForSequenceClassification, logging

    logging.set_verbosity_error()  # the head is new, and that is meant
    logging.disable_progress_bar()
    torch.manual_seed(0)
    model = BertForSequenceClassification.from_pretrained(model_folder(), num_labels=1)
    torch.nn.init.normal_(model.classifier.weight, std=_HEAD_DEVIATION)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in _TOKENIZER:
        shutil.copy(model_folder() / name, FOLDER / name)
    model.save_pretrained(FOLDER)
    return FOLDER
