"""Which of several models answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ragplane.core.errors import ModelError, ModelNotFoundError
from serve.loaded_model import ABILITIES, LoadedModel
from serve.registry import ModelRegistry


def model(name: str, kind: str, *, late: bool = False) -> LoadedModel:
    abilities = ABILITIES[cast(Any, kind)] | ({"rerank"} if late else set())
    return cast(LoadedModel, SimpleNamespace(name=name, abilities=abilities))


SMALL, LARGE = model("small", "embedding", late=True), model("large", "embedding")
CROSS, NLI = model("cross", "reranker"), model("nli", "classifier")


def test_one_model_of_a_kind_answers_to_any_name() -> None:
    registry = ModelRegistry([SMALL, NLI])
    assert registry.pick("embed") is SMALL
    assert registry.pick("embed", "gpt-embeddings") is SMALL
    assert registry.pick("predict", "nli") is NLI


def test_several_are_told_apart_by_name() -> None:
    """Behaviour 29."""
    registry = ModelRegistry([SMALL, LARGE, CROSS])
    assert registry.pick("embed", "large") is LARGE
    assert registry.pick("embed") is SMALL
    assert registry.pick("rerank", "cross") is CROSS
    with pytest.raises(ModelNotFoundError, match="'huge' is not served; served are: small, large"):
        registry.pick("embed", "huge")


def test_the_wrong_kind_is_told() -> None:
    with pytest.raises(ModelError, match="model nli is no model that reranks"):
        ModelRegistry([SMALL, NLI]).pick("rerank", "nli")
    with pytest.raises(ModelError, match="no model that embeds sparsely is served"):
        ModelRegistry([SMALL]).pick("embed_sparse")
    with pytest.raises(ModelError, match="no model is served"):
        ModelRegistry([]).any()
