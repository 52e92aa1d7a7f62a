"""Settings: where they come from, which ones are refused, and what they do not show."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from ragplane.core.config import Settings, load_settings
from ragplane.core.errors import ConfigError


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration file that RAGPLANE_CONFIG names; empty at first."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"RAGPLANE_{name.upper()}", raising=False)
    file = tmp_path / "settings.toml"
    file.touch()
    monkeypatch.setenv("RAGPLANE_CONFIG", str(file))
    return file


@pytest.mark.usefixtures("config")
def test_default_holds_where_nothing_is_set() -> None:
    assert load_settings().chunk_tokens == 200


def test_file_wins_over_the_default(config: Path) -> None:
    config.write_text("chunk_tokens = 99")
    assert load_settings().chunk_tokens == 99


def test_environment_wins_over_the_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("chunk_tokens = 99\nlog_level = 'info'")
    monkeypatch.setenv("RAGPLANE_CHUNK_TOKENS", "50")
    settings = load_settings()
    assert (settings.chunk_tokens, settings.log_level) == (50, "info")


def test_override_wins_over_all_and_none_is_no_override(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGPLANE_CHUNK_TOKENS", "50")
    assert load_settings(chunk_tokens=70).chunk_tokens == 70
    assert load_settings(chunk_tokens=None).chunk_tokens == 50


def test_file_in_the_working_folder_is_read(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAGPLANE_CONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ragplane.toml").write_text("chunk_tokens = 33")
    assert load_settings().chunk_tokens == 33


def test_unknown_key_in_the_file_is_named(config: Path) -> None:
    config.write_text("chunk_tokns = 99")
    with pytest.raises(ConfigError, match="chunk_tokns"):
        load_settings()


def test_file_that_is_not_toml_is_refused(config: Path) -> None:
    config.write_text("chunk_tokens 99")
    with pytest.raises(ConfigError, match="toml"):
        load_settings()


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_config_variable_that_names_no_file_is_refused(
    kind: str, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "absent.toml" if kind == "missing" else tmp_path
    monkeypatch.setenv("RAGPLANE_CONFIG", str(named))
    with pytest.raises(ConfigError, match=str(named)):
        load_settings()


@pytest.mark.usefixtures("config")
def test_every_bad_setting_is_named_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGPLANE_CHUNK_TOKENS", "seventy")
    monkeypatch.setenv("RAGPLANE_DRAIN_S", "-4.25")
    with pytest.raises(ConfigError) as caught:
        load_settings()
    message = str(caught.value)
    assert "chunk_tokens" in message
    assert "drain_s" in message
    assert "seventy" not in message
    assert "-4.25" not in message
    assert caught.value.__cause__ is None  # the cause would print the value


SECRETS = ["database_url", "encoder_api_key", "api_key", "generate_api_key"]


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize("name", SECRETS)
def test_secret_is_masked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"RAGPLANE_{name.upper()}", "swordfish")
    settings = load_settings()
    assert getattr(settings, name).get_secret_value() == "swordfish"
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert "swordfish" not in shown


@pytest.mark.usefixtures("config")
def test_settings_are_frozen() -> None:
    settings = load_settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.chunk_tokens = 5


@pytest.mark.usefixtures("config")
def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_settings(home=Path("~/plane")).home_path == tmp_path.resolve() / "plane"
