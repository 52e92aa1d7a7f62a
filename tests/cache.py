"""Where tests keep what takes long to make: exported models, compiled kernels."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """A RAGPLANE_HOME that lasts between runs."""
    default = Path(__file__).parent.parent / ".cache"
    return Path(os.environ.get("RAGPLANE_TEST_CACHE", default)).resolve()
