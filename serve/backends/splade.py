"""Term weights out of the logits of a masked-language head, on PyTorch."""

from __future__ import annotations

from torch import Tensor

from ragplane.core.models import SpladeHead


def term_weights(logits: Tensor, head: SpladeHead) -> Tensor:
    """What `head` makes of one input's logits [length, vocabulary]: float32 [vocabulary]."""
    if head.strategy == "sum":
        return _weigh(logits.float(), head).sum(0)
    # The weight rises with the logit, so the maximum may go first.
    return _weigh(logits.amax(0).float(), head)


def _weigh(logits: Tensor, head: SpladeHead) -> Tensor:
    weights = logits.relu().log1p()
    return weights.log1p() if head.activation == "log1p_relu" else weights
