"""`HttpGenerator` and servers that answer something else."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from ragplane.core import errors
from serve.generator import HttpGenerator


def answering(monkeypatch: pytest.MonkeyPatch, reply: Any, model: str | None) -> HttpGenerator:
    """A generator whose server answers everything with `reply`."""

    async def request(self: object, method: str, url: str, **kwargs: object) -> httpx.Response:
        return httpx.Response(200, json=reply)

    monkeypatch.setattr(httpx.AsyncClient, "request", request)
    return HttpGenerator("http://server/v1", model=model, api_key=None, timeout_s=1.0)


@pytest.mark.parametrize("listed", [{}, {"data": None}, {"data": []}, {"data": [{}]}, {"data": 1}])
async def test_a_server_that_lists_no_model(
    monkeypatch: pytest.MonkeyPatch, listed: object
) -> None:
    generator = answering(monkeypatch, listed, model=None)
    with pytest.raises(errors.ConfigError, match="http://server/v1 lists no model"):
        await generator.generate("system", "user", max_tokens=5)
    await generator.aclose()


@pytest.mark.parametrize("usage", [[1], "much", {"prompt_tokens": "many"}])
async def test_a_completion_with_an_odd_usage(
    monkeypatch: pytest.MonkeyPatch, usage: object
) -> None:
    reply = {"choices": [{"message": {"content": "text"}}], "usage": usage}
    generator = answering(monkeypatch, reply, model="m")
    with pytest.raises(errors.UnavailableError, match="without a completion"):
        await generator.generate("system", "user", max_tokens=5)
    await generator.aclose()


@pytest.mark.parametrize("url", ["localhost:8080/v1", "http://a:b/v1"])
def test_an_address_that_is_none_is_told(url: str) -> None:
    with pytest.raises(errors.ConfigError, match="not an address"):
        HttpGenerator(url, model=None, api_key=None, timeout_s=1.0)
