"""Opening the store that a setting names.

unset, `postgres`            PostgreSQL: `database_url`, or the embedded one in `home`
`qdrant+http://host:port`    a Qdrant server; `qdrant+https://` too
`qdrant+edge:NAME`           the Qdrant engine in this process, in the folder NAME of `home`
                             (`qdrant` if there is no NAME)
"""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import SecretStr

from ragplane.core.config import Settings
from ragplane.core.errors import ConfigError
from retrieval.stores.base import Store
from retrieval.stores.postgres import PostgresStore

_EDGE = "qdrant+edge:"
_SERVER = ("qdrant+http", "qdrant+https")
_DEFAULT_FOLDER = "qdrant"


async def open_at(address: str | None, settings: Settings, api_key: SecretStr | None) -> Store:
    """The store at this address; `api_key` is for a Qdrant server.

    Raises UnavailableError where it is down, and ConfigError where the address is none or its
    library is not installed.
    """
    if address is None or address == "postgres":
        return await PostgresStore.open(settings)
    if address.startswith(_EDGE):
        return _open_edge(address.removeprefix(_EDGE) or _DEFAULT_FOLDER, settings)
    parts = urlsplit(address)
    # A user in the address would be ignored; the server knows keys.
    if parts.scheme in _SERVER and parts.hostname and not parts.username:
        return await _open_server(address.removeprefix("qdrant+"), api_key)
    # Without the value: an address may carry a password.
    raise ConfigError(
        "RAGPLANE_STORE is neither postgres, qdrant+http://host:port nor qdrant+edge:"
    )


def _open_edge(folder: str, settings: Settings) -> Store:
    try:
        from retrieval.stores.qdrant.edge import EdgeEngine
        from retrieval.stores.qdrant.store import QdrantStore
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error
    path = (settings.home_path / folder).resolve()
    if not path.is_relative_to(settings.home_path) or path == settings.home_path:
        raise ConfigError(f"RAGPLANE_STORE names {folder}, which is not a folder inside the home")
    return QdrantStore(EdgeEngine(path))


async def _open_server(url: str, api_key: SecretStr | None) -> Store:
    try:
        from retrieval.stores.qdrant.client import ServerEngine
        from retrieval.stores.qdrant.store import QdrantStore
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error
    key = api_key.get_secret_value() if api_key else None
    return QdrantStore(await ServerEngine.open(url, key))


def _not_installed(error: ModuleNotFoundError) -> ConfigError:
    return ConfigError(
        f"RAGPLANE_STORE needs {error.name}: install it with `pip install 'ragplane[qdrant]'`"
    )
