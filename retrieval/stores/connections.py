"""Connections to PostgreSQL: opening them, preparing the schema, and naming what fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection, Error, OperationalError, ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from ragplane.core.errors import ConfigError, RagplaneError, StageError, UnavailableError
from retrieval.stores.faults import Fault, fault_of
from retrieval.stores.rows import Row
from retrieval.stores.sql import schema_steps, statement

SCHEMA_VERSION = len(schema_steps())
_MOST_CONNECTIONS = 8
_TIMEOUT_S = 10
_MIN_VECTOR_VERSION = (0, 8)

_RAISED: dict[Fault, Callable[[str], RagplaneError]] = {
    "document": lambda cause: StageError("store", cause),
    "database": UnavailableError,
    "settings": ConfigError,
}

Connection = AsyncConnection[Row]
# Statements are planned each time: a plan kept for all corpora would fit none of them, and kept
# statements do not pass through a connection pooler.
_ARGUMENTS: dict[str, Any] = {
    "row_factory": dict_row,
    "autocommit": True,
    "prepare_threshold": None,
    "connect_timeout": _TIMEOUT_S,
    "application_name": "ragplane",
}


class Connections:
    """Connections to one database whose schema is up to date: kept, and taken in turns.

    Not psycopg's pool: while the database is down, that one has every caller wait out its timeout,
    and then does not say why.
    """

    def __init__(self, conninfo: str) -> None:
        """`conninfo` is a URI or keyword string of libpq. Raises ConfigError if it is neither."""
        self._host = _host(conninfo)
        self._conninfo = conninfo
        self._turns = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._idle: list[Connection] = []
        self._closed = False

    async def open(self) -> None:
        """Prepare the schema.

        Raises UnavailableError naming the host, ConfigError where the database cannot be used, and
        StageError for data that a step cannot bring forward.
        """
        async with (
            self._named("prepare the schema"),
            await self._connect() as connection,
            connection.transaction(),
        ):
            await _prepare(connection)

    @asynccontextmanager
    async def transaction(self, purpose: str) -> AsyncIterator[Connection]:
        """A connection in a transaction, committed at the end.

        Raises StageError at `store` for what the database does not take (the caller knows whose it
        is), ConfigError for what this role or database cannot do, and UnavailableError where it is
        down. All name the host, the `purpose` (as in "cannot read chunks") and the cause.
        """
        async with self._named(purpose), self._turn():
            connection = await self._take()
            try:
                async with connection.transaction():
                    yield connection
            finally:
                await self._give_back(connection)

    async def aclose(self) -> None:
        """Close every connection; one in use closes when it is given back."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    @asynccontextmanager
    async def _named(self, purpose: str) -> AsyncIterator[None]:
        where = f"PostgreSQL at {self._host} cannot {purpose}"
        if self._closed:
            raise UnavailableError(f"{where}: the store is closed")
        try:
            yield
        except Error as error:
            raise _RAISED[fault_of(error)](f"{where}: {first_line(error)}") from error

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await self._turns.acquire()
        except TimeoutError:
            busy = f"PostgreSQL at {self._host}: all {_MOST_CONNECTIONS} connections are busy"
            raise UnavailableError(busy) from None
        try:
            yield
        finally:
            self._turns.release()

    async def _take(self) -> Connection:
        """An idle connection that still works, or a new one."""
        while self._idle:
            connection = self._idle.pop()
            if await _prove(connection):
                return connection
        connection = await self._connect()
        try:
            await register_vector_async(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _give_back(self, connection: Connection) -> None:
        reusable = connection.info.transaction_status == TransactionStatus.IDLE
        if reusable and not self._closed:
            self._idle.append(connection)
        else:
            await connection.close()

    async def _connect(self) -> Connection:
        return await AsyncConnection.connect(self._conninfo, **_ARGUMENTS)


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
    """Bring the schema forward to this version, one process at a time."""
    await connection.execute(statement("lock_schema"))
    present = await fetch_one(connection, statement("has_version"))
    if present and not present["present"]:
        await connection.execute(statement("create_version"))
    row = await fetch_one(connection, statement("version"))
    found = row["version"] if row else 0
    if found > SCHEMA_VERSION:
        raise ConfigError(
            f"the database has schema version {found}, "
            f"this Ragplane knows {SCHEMA_VERSION}: it needs a newer Ragplane"
        )
    if found < SCHEMA_VERSION:
        for step in schema_steps()[found:]:
            await connection.execute(step)
        await connection.execute(statement("set_version"), {"version": SCHEMA_VERSION})
    await _check_vector(connection)


async def _prove(connection: Connection) -> bool:
    """Whether it still answers; closed if not."""
    try:
        await connection.execute("")
    except BaseException as error:
        await connection.close()
        if isinstance(error, OperationalError):
            return False
        raise
    return True


async def _check_vector(connection: Connection) -> None:
    found = await fetch_one(connection, statement("vector_version"))
    version = found["extversion"] if found else "none"
    if not found or tuple(int(part) for part in version.split(".")[:2]) < _MIN_VECTOR_VERSION:
        raise ConfigError(f"the database has pgvector {version}, 0.8 or later is needed")


def first_line(error: Error) -> str:
    """The message without the details, which quote the data."""
    return next(iter(str(error).splitlines()), type(error).__name__)
