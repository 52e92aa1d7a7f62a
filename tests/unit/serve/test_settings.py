"""What the server expects of its settings."""

from __future__ import annotations

import logging

import pytest
import uvicorn
from pydantic import ValidationError

from ragplane.core.config import Settings


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "critical", "INFO"])
def test_every_log_level_is_one_of_uvicorn_and_of_logging(level: str) -> None:
    settings = Settings.model_validate({"log_level": level})
    assert settings.log_level in uvicorn.config.LOG_LEVELS
    assert settings.log_level.upper() in logging.getLevelNamesMapping()


@pytest.mark.parametrize("level", ["warn", "fatal", "notset", "loud", 5])
def test_other_log_levels_are_refused(level: object) -> None:
    with pytest.raises(ValidationError, match="log_level"):
        Settings.model_validate({"log_level": level})
