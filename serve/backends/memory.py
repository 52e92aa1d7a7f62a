"""How many tokens of a model fit the memory at once."""

from __future__ import annotations

from ragplane.core.config import Device
from ragplane.core.cpu import memory_bytes
from ragplane.core.models import ModelFiles

_SHARE = 0.25
_FLOAT32_BYTES = 4
# Copies that a forward pass holds at once of each kind of row.
_HIDDEN_COPIES, _ATTENTION_COPIES, _VOCABULARY_COPIES = 16, 16, 4


def fitting_tokens(files: ModelFiles, *, packed: bool, device: Device) -> int:
    """Tokens whose activations fit a quarter of the memory, at least one longest input's.

    A token costs its hidden state and the four times wider one of the feed-forward layer, float32,
    a few times over, and a row of attention scores in each head. Padded sparse models hold a
    logit of each term for each token besides.
    """
    values = _HIDDEN_COPIES * files.hidden_size + _ATTENTION_COPIES * files.max_tokens
    if files.task == "sparse" and not packed:
        values += _VOCABULARY_COPIES * files.vocabulary_size
    memory = _gpu_bytes() if device == "cuda" else memory_bytes()
    return max(files.max_tokens, int(_SHARE * memory / (_FLOAT32_BYTES * values)))


def _gpu_bytes() -> int:
    import torch

    return int(torch.cuda.get_device_properties(0).total_memory)
