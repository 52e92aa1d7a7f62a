"""What the routes work with, also while the models still load."""

from __future__ import annotations

from typing import cast

from fastapi import Request

from ragplane.core.config import Settings
from ragplane.core.errors import UnavailableError
from serve.http.metrics import Metrics
from serve.local import LocalEncoder


class Services:
    """Settings, metrics, and the encoder once there is one."""

    def __init__(self, settings: Settings, encoder: LocalEncoder | None = None) -> None:
        self.settings = settings
        self.metrics = Metrics(self._queue_size)
        self._encoder: LocalEncoder | None = None
        if encoder is not None:
            self.attach(encoder)

    def attach(self, encoder: LocalEncoder) -> None:
        """Answer with `encoder` from now on; it stays the caller's to close."""
        for model in encoder.models:
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

    def _queue_size(self) -> float:
        models = () if self._encoder is None else self._encoder.models
        return sum(model.batcher.queue_size for model in models)


def services(request: Request) -> Services:
    """The services of the app that answers `request`."""
    return cast(Services, request.app.state.services)
