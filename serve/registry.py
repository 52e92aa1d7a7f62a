"""The models that one process serves, and which of them answers a request."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from ragplane.core.errors import ModelError, ModelNotFoundError
from serve.loaded_model import Ability, LoadedModel

_VERBS: dict[Ability, str] = {
    "embed": "embeds",
    "embed_sparse": "embeds sparsely",
    "embed_all": "embeds tokens",
    "rerank": "reranks",
    "predict": "classifies",
}
_log = structlog.get_logger()


class ModelRegistry:
    """The models in order of preference; their names differ."""

    def __init__(self, models: Sequence[LoadedModel]) -> None:
        self.models = tuple(models)

    def pick(self, ability: Ability, wanted: str | None = None) -> LoadedModel:
        """The model that does this: the one of that name, else the only or first one.

        Raises ModelError if none can or the one of that name cannot, and ModelNotFoundError for an
        unknown name while several can.
        """
        able = [model for model in self.models if ability in model.abilities]
        named = next((model for model in self.models if model.name == wanted), None)
        if not able:
            raise ModelError(f"no model that {_VERBS[ability]} is served")
        if named is not None and named not in able:
            raise ModelError(f"model {named.name} is no model that {_VERBS[ability]}")
        if named is not None:
            return named
        if wanted is not None:
            self._note(wanted, able)
        return able[0]

    def any(self) -> LoadedModel:
        """The first model. Raises ModelError if there is none."""
        if not self.models:
            raise ModelError("no model is served")
        return self.models[0]

    def _note(self, wanted: str, able: Sequence[LoadedModel]) -> None:
        if len(able) > 1:
            names = ", ".join(model.name for model in able)
            message = f"model {wanted!r} is not served; served are: {names}"
            raise ModelNotFoundError(message, param="model")
        _log.info("another model was asked for", wanted=wanted, served=able[0].name)
