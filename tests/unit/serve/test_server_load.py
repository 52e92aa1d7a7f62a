"""What the server does between opening the models and taking requests."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from structlog.testing import capture_logs

from ragplane.core.config import Settings
from serve.http.services import Services
from serve.http.serving import _load
from serve.loading import Opening


class StubEncoder:
    """Models that took 4.9 s to calibrate, and a warm-up that takes as long as it may."""

    models = (SimpleNamespace(calibration_s=4.0), SimpleNamespace(calibration_s=0.9))
    registry = SimpleNamespace(models=())

    def __init__(self) -> None:
        self.warmed = False

    async def warm_up(self) -> None:
        self.warmed = True
        await asyncio.sleep(60)


@pytest.mark.parametrize(("warm_up_s", "warms"), [(5.0, True), (0.0, False)])
async def test_warm_up_has_what_calibration_left(
    warm_up_s: float, warms: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 28."""
    encoder = StubEncoder()

    async def open_stub(settings: Settings, opening: Opening) -> StubEncoder:
        return encoder

    monkeypatch.setattr("serve.http.serving.LocalEncoder.open", open_stub)
    monkeypatch.setattr("serve.http.serving.gc.freeze", lambda: None)
    services = Services(Settings(home=tmp_path, warm_up_s=warm_up_s))
    started_s = time.perf_counter()
    with capture_logs() as logs:
        await _load(services, cast(Opening, None))
    assert time.perf_counter() - started_s < 2
    assert (encoder.warmed, len(logs)) == (warms, int(warms))
    assert not services.loading
