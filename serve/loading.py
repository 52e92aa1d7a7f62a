"""Opening the models that the settings name."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, ModelError
from ragplane.core.models import NO_MODEL, ModelFiles, is_hub_id, read_model
from ragplane.core.process import end_running
from serve.backends.choose import open_backend, pooling_of
from serve.backends.opened import OpenedBackend
from serve.loaded_model import LoadedModel

_EMBEDDING_SETTINGS = ("served_model_name", "pooling", "default_prompt", "default_prompt_name")
Opened = dict[str, tuple[ModelFiles, OpenedBackend]]


class Opening:
    """Models that are being opened on a thread of their own."""

    def __init__(self, settings: Settings, *, apart: bool) -> None:
        """`apart`: in processes of their own."""
        self._settings = settings
        self._apart = apart
        self._given_up = threading.Event()
        opener = ThreadPoolExecutor(1, "opening")
        self._future = opener.submit(self._open_all)
        opener.shutdown(wait=False)

    def wait(self, limit_s: float) -> None:
        """Until they are open, or that has failed; `limit_s` at most."""
        futures.wait([self._future], limit_s)

    async def opened(self) -> Opened:
        """Each distinct model once, the embedding model first, by its name in the settings.

        Takes seconds; the first time, models are exported and calibrated. Raises ModelError, also
        for a model of the wrong kind, and ConfigError. Cancelled, it ends the processes that
        export or try backends, and what is open is closed.
        """
        try:
            return await asyncio.wrap_future(self._future)
        except asyncio.CancelledError:
            self._given_up.set()
            end_running()
            self._future.add_done_callback(_close_unwanted)
            raise

    def _open_all(self) -> Opened:
        opened: Opened = {}
        files = read_models(self._settings)
        try:
            for spec, model in files.items():
                if self._given_up.is_set():
                    break
                spent_s = sum(backend.calibration_s for _, backend in opened.values())
                limit_s = _calibration_s(self._settings, spent_s, len(files) - len(opened))
                backend = _open(spec, model, self._settings, limit_s, apart=self._apart)
                opened[spec] = model, backend
        except BaseException:
            _close(opened)
            raise
        return opened


async def load_models(opening: Opening, settings: Settings) -> list[LoadedModel]:
    """The models with their threads. Raises as `Opening.opened`; nothing of a model stays then."""
    opened = await opening.opened()
    loaded: list[LoadedModel] = []
    try:
        for spec, (files, backend) in opened.items():
            loaded.append(await _start(spec, files, backend, settings, loaded))
    except BaseException:
        await asyncio.gather(*(model.batcher.aclose() for model in loaded))
        _close(opened)
        raise
    return loaded


def _close_unwanted(opening: Future[Opened]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        _close(opening.result())


def _close(opened: Opened) -> None:
    for _, model in opened.values():
        model.backend.close()


def _open(
    spec: str, files: ModelFiles, settings: Settings, calibration_s: float, *, apart: bool
) -> OpenedBackend:
    try:
        return open_backend(spec, files, settings, calibration_s=calibration_s, apart=apart)
    except ModelError as error:
        if files.name in str(error):
            raise
        raise ModelError(f"model {files.name}: {error}") from error


async def _start(
    spec: str,
    files: ModelFiles,
    opened: OpenedBackend,
    settings: Settings,
    others: Sequence[LoadedModel],
) -> LoadedModel:
    is_main = spec == settings.embed_model
    is_taken = files.name in {other.name for other in others}
    served = settings.served_model_name if is_main else None
    return await asyncio.to_thread(
        LoadedModel,
        files,
        opened,
        settings,
        name=served or (spec if is_taken else files.name),
        is_main=is_main,
        late_interaction=spec == settings.rerank_model and files.kind == "embedding",
    )


def _calibration_s(settings: Settings, spent_s: float, left: int) -> float:
    """An even share of what is left of `warm_up_s`, for `left` models and the warm-up after."""
    return max(0.0, settings.warm_up_s - spent_s) / (left + 1)


def read_models(settings: Settings) -> dict[str, ModelFiles]:
    """The files of each distinct model, by its name in the settings.

    Raises ModelError, and ConfigError if settings of an embedding model have none.
    """
    _require_use(settings)
    files = {spec: _read(spec, settings) for spec in _specs(settings)}
    _require(files, settings.embed_model, ("embedding", "sparse"), "embed_model")
    _require(files, settings.rerank_model, ("embedding", "reranker"), "rerank_model")
    return files


def check_folders(settings: Settings) -> None:
    """Raise ModelError for a model folder that cannot be used; hub ids are not looked up.

    Raises ConfigError as `read_models`.
    """
    _require_use(settings)
    for spec in _specs(settings):
        if not is_hub_id(spec):
            _read(spec, settings)


def _require_use(settings: Settings) -> None:
    given = [name for name in _EMBEDDING_SETTINGS if getattr(settings, name) is not None]
    if settings.embed_model == NO_MODEL and given:
        raise ConfigError(f"{given[0]} is for the embedding model, and embed_model is none")


def _specs(settings: Settings) -> list[str]:
    wanted = (settings.embed_model, settings.rerank_model, *settings.extra_models)
    return list(dict.fromkeys(spec for spec in wanted if spec != NO_MODEL))


def _read(spec: str, settings: Settings) -> ModelFiles:
    return read_model(spec, pooling=pooling_of(spec, settings))


def _require(files: dict[str, ModelFiles], spec: str, kinds: tuple[str, ...], setting: str) -> None:
    if spec in files and files[spec].kind not in kinds:
        raise ModelError(f"{setting} {spec}: a {files[spec].kind} cannot serve as that")
