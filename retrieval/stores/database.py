"""The PostgreSQL database of these settings, for whatever keeps something in it."""

from __future__ import annotations

import asyncio

from ragplane.core.config import Settings
from retrieval.stores.connections import Connections
from retrieval.stores.embedded import EmbeddedServer


class Database:
    """Connections to a database whose schema is up to date, and the server if it is embedded."""

    def __init__(self, connections: Connections, server: EmbeddedServer | None) -> None:
        self.connections = connections
        self._server = server

    @classmethod
    async def open(cls, settings: Settings) -> Database:
        """Connect to `settings.database_url`, or start the embedded server in `settings.home`.

        Raises UnavailableError naming the host or folder, and ConfigError where it cannot be used.
        """
        if settings.database_url:
            return await cls._connect(settings.database_url.get_secret_value(), None)
        server = EmbeddedServer(settings.home_path / "postgres")
        return await cls._connect(await asyncio.to_thread(server.start), server)

    @classmethod
    async def _connect(cls, conninfo: str, server: EmbeddedServer | None) -> Database:
        database = cls(Connections(conninfo), server)
        try:
            await database.connections.open()
        except BaseException:
            await database.aclose()
            raise
        return database

    async def aclose(self) -> None:
        """Close connections; an embedded server stops with its last user."""
        await self.connections.aclose()
        if self._server:
            await asyncio.to_thread(self._server.stop)
