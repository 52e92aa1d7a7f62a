"""What the server expects of its settings."""

from __future__ import annotations

import logging

import pytest
import uvicorn
from pydantic import ValidationError

from ragplane.core.config import Settings
from serve.loaded_model import budget_tokens


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "critical", "INFO"])
def test_every_log_level_is_one_of_uvicorn_and_of_logging(level: str) -> None:
    settings = Settings.model_validate({"log_level": level})
    assert settings.log_level in uvicorn.config.LOG_LEVELS
    assert settings.log_level.upper() in logging.getLevelNamesMapping()


@pytest.mark.parametrize("level", ["warn", "fatal", "notset", "loud", 5])
def test_other_log_levels_are_refused(level: object) -> None:
    with pytest.raises(ValidationError, match="log_level"):
        Settings.model_validate({"log_level": level})


def test_a_batch_is_filled_to_the_micro_batch_but_never_over_the_limit() -> None:
    assert budget_tokens(Settings()) == 2048
    assert budget_tokens(Settings(micro_batch_tokens=4096)) == 4096
    assert budget_tokens(Settings(max_batch_tokens=1024)) == 1024
