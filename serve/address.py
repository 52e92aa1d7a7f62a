"""The address of a server, as a setting names it."""

from __future__ import annotations

import httpx

from ragplane.core.errors import ConfigError

_LAST_PORT = 65535


def server_url(given: str) -> str:
    """`given` without a slash at the end. Raises ConfigError unless it is an HTTP address."""
    try:
        url = httpx.URL(given)
    except httpx.InvalidURL as error:
        raise ConfigError(f"{given!r}: not an address of a server: {error}") from error
    if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > _LAST_PORT:
        raise ConfigError(f"{given!r}: not an address of a server: http://host:port is expected")
    return given.rstrip("/")
