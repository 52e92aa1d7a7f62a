"""Fixtures of all rooms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cache import cache_folder

# float32 on one backend: exact, the same on every machine, and quick to start. What is about the
# other backends, or about the choice, says so itself. Processes that tests start inherit it.
os.environ |= {"RAGPLANE_BACKEND": "onnxruntime", "RAGPLANE_DTYPE": "float32"}


@pytest.fixture(scope="session")
def model_home() -> Path:
    """A RAGPLANE_HOME that keeps exported models between runs."""
    return cache_folder()


@pytest.fixture
def home(tmp_path: Path, model_home: Path) -> Path:
    """A fresh RAGPLANE_HOME that borrows the exported models."""
    return make_home(tmp_path / "home", model_home)


def make_home(folder: Path, model_home: Path) -> Path:
    """An empty home with a link to the exported models."""
    (model_home / "models").mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    (folder / "models").symlink_to(model_home / "models")
    return folder
