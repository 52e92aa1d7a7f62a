"""The flags of `ragplane serve`: each reaches its setting, and none hides the environment."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from ragplane.cli import app
from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError

FLAGS = {
    "--embed-model": ("embed_model", "one", "one"),
    "--rerank-model": ("rerank_model", "two", "two"),
    "--served-model-name": ("served_model_name", "name", "name"),
    "--backend": ("backend", "torch", "torch"),
    "--dtype": ("dtype", "bfloat16", "bfloat16"),
    "--device": ("device", "cuda", "cuda"),
    "--pooling": ("pooling", "last-token", "last-token"),
    "--default-prompt": ("default_prompt", "query: ", "query: "),
    "--default-prompt-name": ("default_prompt_name", "query", "query"),
    "--threads": ("threads", "3", 3),
    "--tokenization-workers": ("tokenization_workers", "4", 4),
    "--max-concurrent-requests": ("max_concurrent_requests", "5", 5),
    "--max-client-batch-size": ("max_client_batch_size", "6", 6),
    "--max-batch-tokens": ("max_batch_tokens", "7", 7),
    "--max-batch-requests": ("max_batch_requests", "8", 8),
    "--micro-batch-tokens": ("micro_batch_tokens", "9", 9),
    "--scheduling": ("scheduling", "fifo", "fifo"),
    "--payload-limit": ("payload_limit_bytes", "10", 10),
    "--otlp-endpoint": ("otlp_endpoint", "http://collector", "http://collector"),
}
Started = dict[str, object]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """What the server was started with."""
    seen: Started = {}

    def run(settings: Settings, *, host: str, port: int) -> int:
        seen.update(settings=settings, host=host, port=port)
        return 0

    monkeypatch.setattr("serve.server.run", run)
    monkeypatch.setattr("ragplane.core.telemetry.configure", lambda settings: None)
    return seen


def serve(*flags: str) -> None:
    """Raises what the command raises."""
    CliRunner().invoke(app, ["serve", *flags], catch_exceptions=False)


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_is_a_setting(started: Started, flag: str) -> None:
    name, given, expected = FLAGS[flag]
    serve(flag, given)
    settings = started["settings"]
    assert getattr(settings, name) == expected
    changed = {key for key in Settings.model_fields if getattr(settings, key) != _plain(key)}
    assert changed == {name}


def _plain(name: str) -> object:
    return getattr(Settings(), name)


def test_flags_that_repeat_and_switches(started: Started) -> None:
    serve("--extra-model", "a", "--extra-model", "b", "--cors-allow-origin", "https://x")
    settings = started["settings"]
    assert isinstance(settings, Settings)
    assert settings.extra_models == ("a", "b")
    assert settings.cors_allow_origin == ("https://x",)
    assert settings.auto_truncate
    serve("--no-auto-truncate", "--api-key", "K", "--hostname", "::1", "--port", "0")
    settings = started["settings"]
    assert isinstance(settings, Settings)
    assert settings.api_key is not None
    assert (settings.auto_truncate, settings.api_key.get_secret_value()) == (False, "K")
    assert (started["host"], started["port"]) == ("::1", 0)
    assert "K" not in repr(settings.api_key)


def test_what_is_not_given_comes_from_the_environment(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGPLANE_EXTRA_MODELS", '["a"]')
    monkeypatch.setenv("RAGPLANE_CORS_ALLOW_ORIGIN", '["*"]')
    monkeypatch.setenv("RAGPLANE_AUTO_TRUNCATE", "false")
    monkeypatch.setenv("RAGPLANE_MAX_BATCH_TOKENS", "99")
    serve()
    settings = started["settings"]
    assert isinstance(settings, Settings)
    assert (settings.extra_models, settings.cors_allow_origin) == (("a",), ("*",))
    assert (settings.auto_truncate, settings.max_batch_tokens) == (False, 99)


@pytest.mark.usefixtures("started")
def test_no_model_at_all_is_refused() -> None:
    none = ("--embed-model", "none", "--rerank-model", "none")
    with pytest.raises(ConfigError, match="no model to serve"):
        serve(*none)


def test_another_model_alone_is_served(started: Started) -> None:
    serve("--embed-model", "none", "--rerank-model", "none", "--extra-model", "a")
    assert started
