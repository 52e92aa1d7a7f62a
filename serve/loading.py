"""Opening the models that the settings name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, ModelError
from ragplane.core.models import NO_MODEL, ModelFiles, is_hub_id, read_model
from ragplane.core.process import end_running
from serve.backends.choose import open_backend
from serve.backends.opened import OpenedBackend
from serve.loaded_model import LoadedModel

_EMBEDDING_SETTINGS = ("served_model_name", "pooling", "default_prompt", "default_prompt_name")


async def load_models(settings: Settings) -> list[LoadedModel]:
    """Each distinct model once, the embedding model first. Takes seconds, in threads.

    Raises ModelError, also for a model of the wrong kind, and ConfigError; then no thread of a
    model stays behind. Cancelled, it ends the processes that export or try backends.
    """
    try:
        files = await asyncio.to_thread(read_models, settings)
        opened: dict[str, OpenedBackend] = {}
        for spec, model in files.items():
            limit_s = _calibration_s(settings, opened.values(), len(files) - len(opened))
            opened[spec] = await asyncio.to_thread(_open, spec, model, settings, limit_s)
    except asyncio.CancelledError:
        end_running()
        raise
    loaded: list[LoadedModel] = []
    try:
        for spec, model in files.items():
            loaded.append(await _start(spec, model, opened[spec], settings, loaded))
    except BaseException:
        await asyncio.gather(*(model.batcher.aclose() for model in loaded))
        raise
    return loaded


def _open(spec: str, files: ModelFiles, settings: Settings, calibration_s: float) -> OpenedBackend:
    try:
        return open_backend(spec, files, settings, calibration_s=calibration_s)
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


def _calibration_s(settings: Settings, opened: Iterable[OpenedBackend], left: int) -> float:
    """An even share of what is left of `warm_up_s`, for `left` models and the warm-up after."""
    spent_s = sum(backend.calibration_s for backend in opened)
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
    return read_model(spec, pooling=settings.pooling if spec == settings.embed_model else None)


def _require(files: dict[str, ModelFiles], spec: str, kinds: tuple[str, ...], setting: str) -> None:
    if spec in files and files[spec].kind not in kinds:
        raise ModelError(f"{setting} {spec}: a {files[spec].kind} cannot serve as that")
