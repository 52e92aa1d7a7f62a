"""A vision model behind any OpenAI-compatible server. Blocking: it runs in parser processes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
from pydantic import BaseModel, Field, NonNegativeInt, ValidationError

from ingest.vlm.base import Endpoint, VlmAnswer, VlmCall, VlmFailure, VlmReply
from ingest.vlm.prompts import messages
from serve.address import server_url

_MAX_REPLY_BYTES = 8 << 20
_EXCERPT_CHARACTERS = 200
_CONNECT_TIMEOUT_S = 10.0
_RETRIABLE = frozenset({408, 409, 425, 429})
_OF_THE_PAGE = frozenset({400, 413, 422})  # too large, or a context that is too long
_NOTHING_WAS_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


class HttpVisionReader:
    """Calls `/chat/completions` below the endpoint's URL."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Raises ConfigError for a URL that is none."""
        key = endpoint.api_key
        self._url = f"{server_url(endpoint.url)}/chat/completions"
        self._shown_url = str(httpx.URL(self._url).copy_with(userinfo=b""))
        self._model = endpoint.model
        self._client = httpx.Client(headers={"Authorization": f"Bearer {key}"} if key else {})

    def read(self, call: VlmCall) -> VlmReply:
        """See VisionReader."""
        body = {
            "model": self._model,
            "messages": messages(call.image.data_url),
            "max_tokens": call.answer_tokens,
            "temperature": call.temperature,
        }
        try:
            return self._ask(body, call.timeout_s)
        except httpx.HTTPError as error:
            return VlmFailure(
                f"{type(error).__name__} {self._shown_url}: {error}",
                retriable=isinstance(error, httpx.TransportError),
                worked=not isinstance(error, _NOTHING_WAS_SENT),
            )

    def close(self) -> None:
        """See VisionReader."""
        self._client.close()

    def _ask(self, body: Mapping[str, object], timeout_s: float) -> VlmReply:
        """One request. Raises httpx.ReadTimeout also for a server that sends drop by drop."""
        deadline = time.monotonic() + timeout_s
        timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S))
        content = bytearray()
        with self._client.stream("POST", self._url, json=body, timeout=timeout) as response:
            for part in response.iter_bytes():
                content += part
                if len(content) > _MAX_REPLY_BYTES:
                    cause = f"{self._shown_url} answered more than {_MAX_REPLY_BYTES:,} bytes"
                    return VlmFailure(cause, retriable=True, worked=True)
                if time.monotonic() > deadline:
                    message = f"no whole answer within {timeout_s:g} s"
                    raise httpx.ReadTimeout(message, request=response.request)
        if response.is_success:
            return _answer(bytes(content), self._shown_url)
        return _refusal(response, bytes(content), self._shown_url)


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: NonNegativeInt
    completion_tokens: NonNegativeInt


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def _answer(content: bytes, url: str) -> VlmReply:
    try:
        completion = _Completion.model_validate_json(content)
    except ValidationError as error:
        what = error.errors(include_url=False, include_input=False)[0]["msg"]
        return VlmFailure(f"{url} answered without a completion: {what}", True, worked=True)
    choice, usage = completion.choices[0], completion.usage
    return VlmAnswer(
        choice.message.content or "",
        choice.finish_reason or "stop",
        usage.prompt_tokens if usage else None,
        usage.completion_tokens if usage else None,
    )


def _refusal(response: httpx.Response, content: bytes, url: str) -> VlmFailure:
    status = response.status_code
    excerpt = " ".join(content.decode("utf-8", "replace").split())[:_EXCERPT_CHARACTERS]
    return VlmFailure(
        f"{url} answered {status}: {excerpt}",
        retriable=status in _RETRIABLE or status >= 500,
        retry_after_s=retry_after_s(response.headers.get("retry-after"), datetime.now(UTC)),
        of_page=status in _OF_THE_PAGE,
    )


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header (seconds or a date, RFC 9110); None if it says none.

    `now` is aware of its zone.
    """
    if header is None:
        return None
    if header.strip().isdigit():
        return float(header)
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
