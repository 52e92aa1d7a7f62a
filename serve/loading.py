"""Opening the models that the settings name."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ragplane.core.config import Settings
from ragplane.core.errors import ModelError
from ragplane.core.models import NO_MODEL, ModelFiles, read_model
from serve.backends.choose import open_backend
from serve.loaded_model import LoadedModel


async def load_models(settings: Settings) -> list[LoadedModel]:
    """Each distinct model once, the embedding model first. Takes seconds, in threads.

    Raises ModelError, also for a model of the wrong kind, and ConfigError.
    """
    files = await asyncio.to_thread(read_models, settings)
    opened = {
        spec: await asyncio.to_thread(open_backend, spec, model, settings)
        for spec, model in files.items()
    }
    loaded: list[LoadedModel] = []
    for spec, model in files.items():
        taken = {other.name for other in loaded}
        served = settings.served_model_name if spec == settings.embed_model else None
        name = served or (spec if model.name in taken else model.name)
        late = spec == settings.rerank_model and model.kind == "embedding"
        loaded.append(
            await asyncio.to_thread(
                LoadedModel, model, opened[spec], settings, name=name, late_interaction=late
            )
        )
    return loaded


def read_models(settings: Settings) -> dict[str, ModelFiles]:
    """The files of each distinct model, by its name in the settings. Raises ModelError."""
    files = {spec: _read(spec, settings) for spec in _specs(settings)}
    _require(files, settings.embed_model, ("embedding", "sparse"), "embed_model")
    _require(files, settings.rerank_model, ("embedding", "reranker"), "rerank_model")
    return files


def check_folders(settings: Settings) -> None:
    """Raise ModelError for a model folder that cannot be used; hub ids are not looked up."""
    for spec in _specs(settings):
        if Path(spec).expanduser().is_dir():
            _read(spec, settings)


def _specs(settings: Settings) -> list[str]:
    wanted = (settings.embed_model, settings.rerank_model, *settings.extra_models)
    return list(dict.fromkeys(spec for spec in wanted if spec != NO_MODEL))


def _read(spec: str, settings: Settings) -> ModelFiles:
    return read_model(spec, pooling=settings.pooling if spec == settings.embed_model else None)


def _require(files: dict[str, ModelFiles], spec: str, kinds: tuple[str, ...], setting: str) -> None:
    if spec in files and files[spec].kind not in kinds:
        raise ModelError(f"{setting} {spec}: a {files[spec].kind} cannot serve as that")
