"""Fixtures of all rooms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def model_home() -> Path:
    """A RAGPLANE_HOME that keeps exported models between runs."""
    default = Path(__file__).parent.parent / ".cache"
    return Path(os.environ.get("RAGPLANE_TEST_CACHE", default)).resolve()
