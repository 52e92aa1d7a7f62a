"""Connections to PostgreSQL: opening them, preparing the schema, and naming what fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection, Error, OperationalError, ProgrammingError, errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from ragplane.core.errors import ConfigError, UnavailableError
from retrieval.stores.rows import Row
from retrieval.stores.sql import schema, statement

SCHEMA_VERSION = 1
_POOL_SIZE = 8
_CONNECT_TIMEOUT_S = 10
_MIN_VECTOR_VERSION = (0, 8)

Connection = AsyncConnection[Row]
# Statements are planned each time: a plan kept for all corpora would fit none of them, and kept
# statements do not pass through a connection pooler.
_ARGUMENTS: dict[str, Any] = {
    "row_factory": dict_row,
    "prepare_threshold": None,
    "connect_timeout": _CONNECT_TIMEOUT_S,
    "application_name": "ragplane",
}


class Connections:
    """A pool of connections to one database whose schema is up to date."""

    def __init__(self, conninfo: str) -> None:
        """`conninfo` is a URI or keyword string of libpq. Raises ConfigError if it is neither."""
        self._host = _host(conninfo)
        self._conninfo = conninfo
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            conninfo,
            open=False,
            min_size=1,
            max_size=_POOL_SIZE,
            timeout=_CONNECT_TIMEOUT_S,
            kwargs=_ARGUMENTS,
            configure=register_vector_async,
            check=AsyncConnectionPool.check_connection,
        )

    async def open(self) -> None:
        """Prepare the schema, then connect.

        Raises UnavailableError naming the host, and ConfigError where the database cannot be used.
        """
        async with self._named():
            # Not from the pool, which would try again until its timeout and then not say why.
            first: Connection = await AsyncConnection.connect(self._conninfo, **_ARGUMENTS)
            async with first:
                await _prepare(first)
            await self._pool.open(wait=True, timeout=_CONNECT_TIMEOUT_S)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection in a transaction, committed at the end. Raises UnavailableError."""
        async with self._named(), self._pool.connection() as connection:
            yield connection

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.close()

    @asynccontextmanager
    async def _named(self) -> AsyncIterator[None]:
        try:
            yield
        except (OperationalError, PoolTimeout) as error:
            raise UnavailableError(f"PostgreSQL at {self._host}: {first_line(error)}") from error


async def fetch_all(
    connection: Connection, query: bytes, parameters: Mapping[str, Any] | None = None
) -> list[Row]:
    """Every row of the query."""
    return await (await connection.execute(query, parameters)).fetchall()


async def fetch_one(
    connection: Connection, query: bytes, parameters: Mapping[str, Any] | None = None
) -> Row | None:
    """The first row of the query, if there is one."""
    return await (await connection.execute(query, parameters)).fetchone()


def _host(conninfo: str) -> str:
    try:
        parts = conninfo_to_dict(conninfo)
    except ProgrammingError:
        # Its message may quote the password.
        raise ConfigError("RAGPLANE_DATABASE_URL is not a PostgreSQL URI") from None
    host, port = parts.get("host") or parts.get("hostaddr") or "localhost", parts.get("port")
    return f"{host}:{port}" if port else str(host)


async def _prepare(connection: Connection) -> None:
    """Bring the schema to this version, one process at a time."""
    try:
        await connection.execute(statement("lock_schema"))
        present = await fetch_one(connection, statement("has_version"))
        if present and not present["present"]:
            await connection.execute(statement("create_version"))
        found = await fetch_one(connection, statement("version"))
        if found and found["version"] > SCHEMA_VERSION:
            raise ConfigError(
                f"the database has schema version {found['version']}, "
                f"this Ragplane knows {SCHEMA_VERSION}: it needs a newer Ragplane"
            )
        if not found or found["version"] < SCHEMA_VERSION:
            await connection.execute(schema())
            await connection.execute(statement("set_version"), {"version": SCHEMA_VERSION})
    except (errors.InsufficientPrivilege, errors.FeatureNotSupported) as error:
        raise ConfigError(f"the database's schema cannot be made: {first_line(error)}") from error
    await _check_vector(connection)


async def _check_vector(connection: Connection) -> None:
    found = await fetch_one(connection, statement("vector_version"))
    version = found["extversion"] if found else "none"
    if not found or tuple(int(part) for part in version.split(".")[:2]) < _MIN_VECTOR_VERSION:
        raise ConfigError(f"the database has pgvector {version}, 0.8 or later is needed")


def first_line(error: Error) -> str:
    """The message without the details, which quote the data."""
    return str(error).splitlines()[0]
