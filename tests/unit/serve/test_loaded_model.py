"""Prompts and fingerprints, and the cache of token vectors."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, LimitError
from serve.backends.base import Backend
from serve.backends.opened import OpenedBackend
from serve.batching.cost import CostModel, Speed
from serve.loaded_model import LoadedModel
from serve.local import LocalEncoder
from serve.preparing import prepare_inputs
from serve.token_cache import TokenCache


class NoBackend(Backend):
    """Never runs."""

    name = "none"
    dtype = "float32"
    packed = False
    streams = 1

    def forward(self, inputs: object) -> list[np.ndarray]:
        raise NotImplementedError


OPENED = OpenedBackend(NoBackend(), CostModel(packed=False), Speed(1000), 256, None, 0.0)


@pytest.fixture
async def prompted(encoder: LocalEncoder, settings: Settings) -> LoadedModel:
    prompts = {"query": "query: ", "passage": "passage: ", "sts": "same: "}
    files = replace(encoder.registry.any().files, prompts=prompts)
    return LoadedModel(files, OPENED, settings)


async def test_prompts(prompted: LoadedModel) -> None:
    assert prompted.prompt_for("query") == "query: "
    assert prompted.prompt_for("document") == "passage: "
    assert prompted.prompt_named("sts") == "same: "
    assert prompted.prompt_named(None) == ""
    with pytest.raises(LimitError, match="passage, query, sts"):
        prompted.prompt_named("other")
    (with_prompt,) = prepare_inputs(prompted, ["text"], prompt="query: ")
    (spelled_out,) = prepare_inputs(prompted, ["query: text"])
    assert with_prompt == spelled_out
    await prompted.batcher.aclose()


async def test_the_default_prompt(prompted: LoadedModel, settings: Settings) -> None:
    files = replace(prompted.files, prompts={"sts": "same: "}, default_prompt_name="sts")
    model = LoadedModel(files, OPENED, settings)
    assert model.prompt_named(None) == model.prompt_for("query") == "same: "
    await model.batcher.aclose()
    await prompted.batcher.aclose()


async def test_a_default_prompt_of_the_settings(prompted: LoadedModel, settings: Settings) -> None:
    given = settings.model_copy(update={"default_prompt": "given: "})
    named = settings.model_copy(update={"default_prompt_name": "sts"})
    models = [LoadedModel(prompted.files, OPENED, one, is_main=True) for one in (given, named)]
    assert [model.prompt_named(None) for model in models] == ["given: ", "same: "]
    assert len({model.fingerprint() for model in (prompted, *models)}) == 3
    for update in (
        {"default_prompt_name": "other"},
        {"default_prompt": "", "default_prompt_name": "sts"},
    ):
        with pytest.raises(ConfigError, match="default_prompt"):
            LoadedModel(prompted.files, OPENED, settings.model_copy(update=update), is_main=True)
    other = LoadedModel(prompted.files, OPENED, given)
    assert other.prompt_named(None) == ""
    for model in (prompted, other, *models):
        await model.batcher.aclose()


async def test_the_fingerprint_tells_prompts_apart(
    prompted: LoadedModel, encoder: LocalEncoder
) -> None:
    assert prompted.fingerprint() != encoder.registry.any().fingerprint()
    await prompted.batcher.aclose()


async def test_the_fingerprint_follows_what_shapes_the_tokens(
    prompted: LoadedModel, settings: Settings, tmp_path: Path
) -> None:
    folder = shutil.copytree(prompted.files.folder, tmp_path / "copy")
    with (folder / "tokenizer.json").open("a") as tokenizer:
        tokenizer.write("\n")
    others = [
        LoadedModel(replace(prompted.files, max_tokens=100), OPENED, settings),
        LoadedModel(replace(prompted.files, folder=folder), OPENED, settings),
    ]
    assert len({model.fingerprint() for model in (prompted, *others)}) == 3
    for model in (prompted, *others):
        await model.batcher.aclose()


def test_token_cache_is_bounded_by_bytes_and_drops_the_least_recent() -> None:
    rows = np.zeros((10, 10), np.float32)  # 400 bytes
    cache = TokenCache(1000)
    cache.put((1,), rows)
    cache.put((2,), rows)
    assert cache.get((1,)) is rows
    cache.put((3,), rows)
    assert cache.get((2,)) is None
    assert cache.get((1,)) is rows
    cache.put((1,), rows)
    assert cache.get((3,)) is rows
    cache.put((4,), np.zeros((100, 10), np.float32))
    assert all(cache.get((n,)) is None for n in range(5))
