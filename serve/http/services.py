"""What the routes work with, also while the models still load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from starlette.requests import Request

from ragplane.core.config import Settings
from ragplane.core.errors import ModelNotFoundError, UnavailableError
from serve.batching.work import LANES, Lane
from serve.http.metrics import Metrics
from serve.loaded_model import Ability, LoadedModel
from serve.local import LocalEncoder


class Services:
    """Settings, metrics, and the encoder once there is one."""

    def __init__(self, settings: Settings, encoder: LocalEncoder | None = None) -> None:
        self.settings = settings
        self.metrics = Metrics(self._queue_sizes)
        self._encoder: LocalEncoder | None = None
        if encoder is not None:
            self.attach(encoder)

    def attach(self, encoder: LocalEncoder) -> None:
        """Answer with `encoder` from now on; it stays the caller's to close."""
        for model in encoder.registry.models:
            model.batcher.listen(self.metrics.batch)
        self._encoder = encoder

    @property
    def encoder(self) -> LocalEncoder:
        """Raises UnavailableError while the models load."""
        if self._encoder is None:
            raise UnavailableError("the models are loading")
        return self._encoder

    @property
    def loading(self) -> bool:
        """True until an encoder is attached."""
        return self._encoder is None

    @property
    def healthy(self) -> bool:
        """False while a model's worker is dead or stuck. A server that loads is healthy."""
        return self._encoder is None or self._encoder.healthy

    @property
    def ready(self) -> bool:
        """False while loading, unhealthy or draining."""
        return self._encoder is not None and self._encoder.ready

    def pick(self, ability: Ability, wanted: str | None) -> LoadedModel:
        """The model that answers; raises as `ModelRegistry.pick`."""
        return self.encoder.registry.pick(ability, wanted)

    def any_model(self, wanted: str | None) -> LoadedModel:
        """The model named `wanted`, else the first.

        Raises ModelError if there is none, ModelNotFoundError for another name of several.
        """
        registry = self.encoder.registry
        named = next((model for model in registry.models if model.name == wanted), None)
        if named is None and wanted is not None and len(registry.models) > 1:
            raise ModelNotFoundError(f"model {wanted!r} is not served", param="model")
        return named or registry.any()

    def main_model(self) -> LoadedModel:
        """The embedding model that answers by default, else the first model. Raises ModelError."""
        registry = self.encoder.registry
        embedders = (model for model in registry.models if "embed" in model.abilities)
        return next(embedders, None) or registry.any()

    def _queue_sizes(self) -> Mapping[Lane, int]:
        models = () if self._encoder is None else self._encoder.registry.models
        sizes = [model.batcher.queue_sizes for model in models]
        return {lane: sum(size[lane] for size in sizes) for lane in LANES}


def services(request: Request) -> Services:
    """The services of the app that answers `request`."""
    return cast(Services, request.app.state.services)
