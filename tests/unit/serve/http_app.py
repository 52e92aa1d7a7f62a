"""What the tests of the HTTP layer share: an application in process, and its series."""

from __future__ import annotations

import re

import httpx

from ragplane.core.config import Settings
from serve.http.app import create_app
from serve.local import LocalEncoder


def connect(settings: Settings, encoder: LocalEncoder, **change: object) -> httpx.AsyncClient:
    """A client of an application around `encoder`, with some settings changed."""
    app = create_app(settings.model_copy(update=change), encoder)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://server")


def samples(text: str) -> dict[tuple[str, str], float]:
    """Value by series name and the value of its first label."""
    lines = re.findall(r'^(\w+)(?:\{\w+="([^"]*)"[^}]*\})? (\S+)$', text, re.MULTILINE)
    return {(name, label): float(value) for name, label, value in lines}
