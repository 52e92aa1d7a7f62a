"""The right to write a document, as a claim gives it: what a store checks last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ingest.ledger.records import Claim, LeaseLostError
from ingest.ledger.rows import claim_parameters
from ingest.ledger.sql import statement
from retrieval.stores.connections import Connection, Connections, fetch_one


@dataclass(frozen=True, slots=True)
class PostgresFence:
    """Implements `Fence` by the document's row, which a claim locks to take it."""

    connections: Connections
    claim: Claim

    async def check(self) -> None:
        """Raise LeaseLostError if the claim does not stand any more."""
        async with self.connections.transaction("check a claim") as connection:
            await self.check_in(connection)

    async def check_in(self, connection: Connection) -> None:
        """As `check`; the row stays locked until this connection's transaction ends."""
        if not await fetch_one(connection, statement("hold"), claim_parameters(self.claim)):
            raise LeaseLostError(self.claim.source)


@dataclass(frozen=True, slots=True)
class MemoryFence:
    """Implements `Fence` by a function that raises LeaseLostError."""

    require: Callable[[], object]

    async def check(self) -> None:
        """Raise LeaseLostError if the claim does not stand any more."""
        self.require()

    async def check_in(self, connection: Connection) -> None:
        """As `check`: a ledger in memory shares no transaction."""
        self.require()
