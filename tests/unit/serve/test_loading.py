"""Which models the settings open, with what, and what is left when one fails."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError, ModelError
from ragplane.core.models import ModelFiles
from serve.backends.base import Backend, ModelInput
from serve.backends.opened import OpenedBackend
from serve.batching.cost import CostModel, Speed
from serve.encoder import Vectors
from serve.loading import Opening, check_folders, load_models, read_models
from tests.unit.serve.families import save_bert


class StubBackend(Backend):
    """Zeros of the right shape."""

    name, dtype, packed, streams = "stub", "float32", True, 1

    def forward(self, inputs: Sequence[ModelInput]) -> list[Vectors]:
        return [np.zeros((len(item.ids), 8), np.float32) for item in inputs]


@pytest.fixture
def limits_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What calibration of each model may take; it takes 4 s."""
    limits: list[float] = []

    def open_stub(
        spec: str, files: ModelFiles, settings: Settings, *, calibration_s: float, apart: bool
    ) -> OpenedBackend:
        limits.append(calibration_s)
        return OpenedBackend(
            StubBackend(), CostModel(packed=True), Speed(1000.0), 512, None, calibration_s=4.0
        )

    monkeypatch.setattr("serve.loading.open_backend", open_stub)
    return limits


@pytest.mark.parametrize(("warm_up_s", "shares"), [(30.0, [10.0, 13.0]), (0.0, [0.0, 0.0])])
async def test_the_models_share_one_time_for_calibration_and_warm_up(
    warm_up_s: float, shares: list[float], limits_s: list[float], tmp_path: Path
) -> None:
    """Behaviour 28."""
    other = str(save_bert(tmp_path / "other"))
    settings = Settings(home=tmp_path, warm_up_s=warm_up_s, extra_models=(other,))
    for model in await load_models(Opening(settings, apart=False), settings):
        await model.batcher.aclose()
    assert limits_s == shares


@pytest.mark.usefixtures("limits_s")
async def test_the_default_prompt_is_for_the_embedding_model(tmp_path: Path) -> None:
    other = str(save_bert(tmp_path / "other"))
    settings = Settings(home=tmp_path, extra_models=(other,), default_prompt="passage: ")
    models = await load_models(Opening(settings, apart=False), settings)
    assert [model.prompt_named(None) for model in models] == ["passage: ", ""]
    for model in models:
        await model.batcher.aclose()


@pytest.mark.usefixtures("limits_s")
async def test_a_model_that_fails_leaves_no_thread(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "other")
    (folder / "tokenizer.json").write_text("{}")
    before = set(threading.enumerate())
    with pytest.raises(ModelError):
        settings = Settings(home=tmp_path, extra_models=(str(folder),))
        await load_models(Opening(settings, apart=False), settings)
    for thread in set(threading.enumerate()) - before:
        if not thread.name.startswith("asyncio"):
            thread.join(timeout=5)
            assert not thread.is_alive(), thread.name


@pytest.mark.parametrize("name", ["served_model_name", "default_prompt", "pooling"])
def test_settings_of_an_embedding_model_need_one(name: str) -> None:
    settings = Settings.model_validate({"embed_model": "none", name: "cls"})
    for check in (check_folders, read_models):
        with pytest.raises(ConfigError, match=f"{name} is for the embedding model"):
            check(settings)
