"""The one seam for "something that generates", and its maker over any OpenAI-compatible server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from ragplane.core.errors import ConfigError, OverloadedError, UnavailableError, describe
from serve.address import server_url


@dataclass(frozen=True, slots=True)
class Generation:
    """What a model wrote, and the tokens that its server counted."""

    text: str
    prompt_tokens: int
    completion_tokens: int


class Generator(Protocol):
    """Writes text after a system and a user message."""

    async def generate(self, system: str, user: str, *, max_tokens: int) -> Generation:
        """Greedy text of at most `max_tokens`. Raises UnavailableError or OverloadedError."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


class HttpGenerator:
    """Calls `/chat/completions` below `base_url`, which ends in `/v1`."""

    def __init__(
        self, base_url: str, *, model: str | None, api_key: str | None, timeout_s: float
    ) -> None:
        """Raises ConfigError for a `base_url` that is none."""
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._url = server_url(base_url)
        self._model = model
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout_s)

    async def generate(self, system: str, user: str, *, max_tokens: int) -> Generation:
        """See Generator."""
        body = {
            "model": self._model or await self._only_model(),
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": user},
            ],
            "max_tokens": max_tokens,
            "temperature": 0,
        }
        reply = await self._call("POST", "/chat/completions", body)
        try:
            usage = reply.get("usage") or {}
            return Generation(
                text=reply["choices"][0]["message"]["content"] or "",
                prompt_tokens=int(usage.get("prompt_tokens", 0)),
                completion_tokens=int(usage.get("completion_tokens", 0)),
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise UnavailableError(
                f"generate: {self._url} answered without a completion"
            ) from error

    async def aclose(self) -> None:
        """See Generator."""
        await self._client.aclose()

    async def _only_model(self) -> str:
        """The first model the server lists, for those who did not name one."""
        reply = await self._call("GET", "/models", None)
        try:
            self._model = str(reply["data"][0]["id"])
        except (KeyError, IndexError, TypeError) as error:
            message = f"generate: {self._url} lists no model; set generate_model"
            raise ConfigError(message) from error
        return self._model

    async def _call(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        url = f"{self._url}{path}"
        try:
            response = await self._client.request(method, url, json=body)
        except httpx.HTTPError as error:
            raise UnavailableError(f"generate: {url}: {describe(error)}") from error
        if response.status_code == 429:
            raise OverloadedError(f"generate: {url} is overloaded")
        if response.is_error:
            raise UnavailableError(
                f"generate: {url} answered {response.status_code}: {response.text[:200]}"
            )
        try:
            reply = response.json()
        except ValueError as error:
            raise UnavailableError(f"generate: {url} did not answer in JSON") from error
        if not isinstance(reply, dict):
            raise UnavailableError(f"generate: {url} did not answer with a JSON object")
        return reply
