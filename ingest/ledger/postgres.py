"""The ledger in PostgreSQL: each method is one short transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from ingest.ledger import rows
from ingest.ledger.codec import decode_page
from ingest.ledger.decisions import (
    MAX_ATTEMPTS,
    SyncPlan,
    fresh_ids,
    plan_sync,
    storable,
    unhashed,
)
from ingest.ledger.fences import PostgresFence
from ingest.ledger.records import (
    Claim,
    DocumentRow,
    LedgerError,
    LedgerStatus,
    PageRow,
    Run,
    RunStatus,
    SourceListing,
    SyncReport,
)
from ingest.ledger.rows import scope
from ingest.ledger.sql import statement
from ingest.parsed import ParseResult, RawPage
from ragplane.core.errors import StageError
from retrieval.stores.base import CorpusKey, PointFact
from retrieval.stores.connections import Connection, Connections, fetch_all, fetch_one
from retrieval.stores.rows import Row

_STATUS_ERRORS = 10
_TRIAGE_ROWS = 1_000


class PostgresLedger:
    """Implements `Ledger` in a database whose schema is up to date."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def unhashed(self, key: CorpusKey, listing: SourceListing) -> set[str]:
        """Sources whose content must be hashed before `sync`, as `decisions.unhashed` says."""
        async with self._connections.transaction("compare a listing") as connection:
            known, differing = await _differences(connection, key, listing, None)
        return unhashed(differing, known)

    async def sync(self, key: CorpusKey, listing: SourceListing, parser_hash: str) -> SyncReport:
        """Record what is new, changed, moved or gone, and what another configuration made stale.

        Only what may differ leaves the database, so an unchanged corpus costs one statement.
        """
        async with self._connections.transaction("sync documents") as connection:
            await connection.execute(statement("lock_sync"), scope(key))
            known, differing = await _differences(connection, key, listing, parser_hash)
            plan = plan_sync(differing, known, parser_hash)
            await _write_plan(connection, key, plan, parser_hash)
        return plan.report(len({file.source for file in listing.files}))

    async def tombstone(self, key: CorpusKey, sources: Collection[str]) -> int:
        """Have these documents deleted; how many there were."""
        return len(await self._all("bury_sources", scope(key) | {"sources": list(sources)}))

    async def retry(self, key: CorpusKey) -> int:
        """Put every failed or partial document back in the queue; how many there were."""
        return len(await self._all("retry", scope(key)))

    async def requeue(self, key: CorpusKey, ids: Collection[UUID]) -> int:
        """Put these documents back in the queue, unless they wait already; how many there were."""
        return len(await self._all("requeue", scope(key) | {"ids": list(ids)}))

    async def holders(self, key: CorpusKey) -> set[str]:
        """The workers that hold documents."""
        return {row["holder"] for row in await self._all("holders", scope(key))}

    async def expire(self, key: CorpusKey, holders: Collection[str]) -> int:
        """End the leases of these workers, which are known to be dead; how many there were."""
        return len(await self._all("expire", scope(key) | {"holders": list(holders)}))

    async def claim(
        self,
        key: CorpusKey,
        worker: str,
        *,
        lease_s: float,
        limit: int,
        max_attempts: int = MAX_ATTEMPTS,
        parser_hash: str | None = None,
        tombstones_only: bool = False,
    ) -> list[Claim]:
        """Take up to `limit` documents that nobody holds, the longest waiting first.

        One whose workers died `max_attempts` times becomes failed at stage `parse` instead.
        """
        terms = {
            "worker": worker,
            "lease_s": lease_s,
            "limit": limit,
            "parser_hash": parser_hash,
            "tombstones_only": tombstones_only,
        }
        async with self._connections.transaction("claim documents") as connection:
            bound = scope(key) | {"max_attempts": max_attempts}
            await connection.execute(statement("give_up"), bound)
            found = await fetch_all(connection, statement("claim"), scope(key) | terms)
        return [Claim(key=key, **row) for row in found]

    async def renew(self, claim: Claim, lease_s: float) -> None:
        """Hold the document for `lease_s` from now on."""
        await self._commit(claim, "renew", {"lease_s": lease_s})

    def fence(self, claim: Claim) -> PostgresFence:
        """What a store checks so that a lost claim writes nothing."""
        return PostgresFence(self._connections, claim)

    async def release(self, claim: Claim) -> None:
        """Give the document back as it is; the attempt does not count."""
        async with self._connections.transaction("release a document") as connection:
            await connection.execute(statement("release"), rows.claim_parameters(claim))

    async def finished_pages(self, claim: Claim, sha256: str) -> dict[int, RawPage]:
        """Pages of this very content that were read under the claim's configuration, by number."""
        wanted = rows.claim_parameters(claim) | {
            "sha256": sha256,
            "parser_hash": claim.parser_hash,
        }
        found = await self._all("finished_pages", wanted)
        pages = {row["number"]: decode_page(row["payload"]) for row in found}
        return {number: page for number, page in pages.items() if page is not None}

    async def finish_pages(self, claim: Claim, sha256: str, pages: Sequence[RawPage]) -> None:
        """Keep pages of the content with that hash, so that no other claim reads them again."""
        table = [rows.raw_page_row(claim, sha256, page) for page in pages]
        async with self._held(claim, "keep pages") as connection:
            await connection.cursor().executemany(statement("write_page"), table)
            await _spend(connection, claim.key.tenant, sum(page.vlm_tokens for page in pages))

    async def finish_parsing(self, claim: Claim, result: ParseResult) -> None:
        """The document is parsed, and waits for its vectors."""
        asked = rows.claim_parameters(claim) | rows.vision_columns(claim, result)
        async with self._held(claim, "finish parsing a document") as connection:
            await connection.execute(statement("finish_parsing"), asked)
            if any(asked["tokens"]):
                [fresh] = await fetch_all(connection, statement("fresh_vision"), asked)
                await _spend(connection, claim.key.tenant, fresh["tokens"])

    async def vision_tokens(self, tenant: str) -> int:
        """What pages of the tenant's documents have cost since the UTC day began."""
        found = await self._all("vision", {"tenant": tenant})
        return found[0]["tokens"] if found else 0

    async def finish_document(self, claim: Claim, result: ParseResult) -> None:
        """The claim's generation is in the store: flip to it, and end the claim."""
        columns = rows.claim_parameters(claim) | rows.result_columns(result)
        table = [rows.page_row(claim, result.document.sha256, page) for page in result.pages]
        async with self._held(claim, "finish a document") as connection:
            await connection.cursor().executemany(statement("write_page"), table)
            await connection.execute(statement("drop_other_pages"), columns)
            await connection.execute(statement("finish_document"), columns)

    async def finish_deletion(self, claim: Claim) -> None:
        """The store holds nothing of the tombstone any more: drop its row."""
        parameters = rows.claim_parameters(claim)
        async with self._connections.transaction("finish a deletion") as connection:
            if not await fetch_one(connection, statement("drop_tombstone"), parameters):
                await connection.execute(statement("release"), parameters)

    async def fail(self, claim: Claim, error: StageError) -> None:
        """The document failed, until `retry`, or until its file changes."""
        what = {"stage": error.stage, "error": storable(error.cause)}
        await self._commit(claim, "fail", what)

    async def corpora(self, tenant: str) -> list[str]:
        """The tenant's corpora that have documents or had runs, by name."""
        return [row["corpus"] for row in await self._all("corpora", {"tenant": tenant})]

    async def documents(self, key: CorpusKey) -> dict[str, DocumentRow]:
        """Every document by its source."""
        found = await self._all("documents", scope(key))
        return {row["source"]: rows.document_from(row) for row in found}

    async def manifest(self, key: CorpusKey) -> dict[UUID, PointFact]:
        """Every point that the store should hold, by its id."""
        return {row.pop("id"): PointFact(**row) for row in await self._all("manifest", scope(key))}

    async def waiting(self) -> dict[CorpusKey, int]:
        """How many documents could be claimed now, in each corpus that has any."""
        found = await self._all("waiting", {})
        return {CorpusKey(row["tenant"], row["corpus"]): row["documents"] for row in found}

    async def status(self, key: CorpusKey) -> LedgerStatus:
        """Counts, and the last ten errors."""
        counts = await self._all("status", scope(key))
        return rows.status_from(counts, await self.errors(key, _STATUS_ERRORS))

    async def errors(self, key: CorpusKey, limit: int) -> list[LedgerError]:
        """The last errors of documents and pages, newest first."""
        found = await self._all("errors", scope(key) | {"limit": limit})
        return [LedgerError(**row) for row in found]

    async def triage_rows(self, key: CorpusKey) -> AsyncIterator[PageRow]:
        """Every page, document by document, without holding a transaction between them."""
        last: Row | None = None
        while True:
            document_id, number = rows.after(last)
            place = {"document_id": document_id, "number": number, "limit": _TRIAGE_ROWS}
            found = await self._all("triage", scope(key) | place)
            for last in found:
                yield rows.triage_from(last)
            if len(found) < _TRIAGE_ROWS:
                return

    async def start_run(self, key: CorpusKey) -> UUID:
        """Note that a run begins."""
        run_id = uuid4()
        async with self._connections.transaction("note a run") as connection:
            await connection.execute(statement("insert_run"), scope(key) | {"id": run_id})
        return run_id

    async def end_run(
        self, run_id: UUID, status: RunStatus, totals: Mapping[str, Mapping[str, int]]
    ) -> None:
        """Note how a run ended, with counts such as {"documents": {"done": 3}}."""
        end = {"id": run_id, "status": status, "totals": Jsonb(totals)}
        async with self._connections.transaction("note a run") as connection:
            await connection.execute(statement("end_run"), end)

    async def runs(self, key: CorpusKey, limit: int) -> list[Run]:
        """The last runs, newest first."""
        return [Run(**row) for row in await self._all("runs", scope(key) | {"limit": limit})]

    @asynccontextmanager
    async def _held(self, claim: Claim, purpose: str) -> AsyncIterator[Connection]:
        """A transaction that holds the document's row, if the claim still stands."""
        async with self._connections.transaction(purpose) as connection:
            await self.fence(claim).check_in(connection)
            yield connection

    async def _commit(self, claim: Claim, name: str, parameters: Row) -> None:
        async with self._held(claim, f"{name.replace('_', ' ')} a document") as connection:
            await connection.execute(statement(name), rows.claim_parameters(claim) | parameters)

    async def _all(self, name: str, parameters: Mapping[str, Any]) -> list[Row]:
        async with self._connections.transaction(f"read {name}") as connection:
            return await fetch_all(connection, statement(name), parameters)


async def _spend(connection: Connection, tenant: str, tokens: int) -> None:
    if tokens:
        await connection.execute(statement("spend_vision"), {"tenant": tenant, "tokens": tokens})


async def _differences(
    connection: Connection, key: CorpusKey, listing: SourceListing, parser_hash: str | None
) -> tuple[dict[str, DocumentRow], SourceListing]:
    """The known documents that may differ from the listing, and the listing without the rest."""
    asked = {"folders": list(listing.complete_folders), "parser_hash": parser_hash}
    found = await fetch_all(
        connection,
        statement("differences"),
        scope(key) | rows.file_columns(listing.files) | asked,
    )
    known = {row["source"]: rows.document_from(row) for row in found if row["id"]}
    listed = {row["listed"] for row in found}
    files = tuple(file for file in listing.files if file.source in listed)
    return known, SourceListing(files, listing.complete_folders)


async def _write_plan(
    connection: Connection, key: CorpusKey, plan: SyncPlan, parser_hash: str
) -> None:
    async def taken(ids: Collection[UUID]) -> set[UUID]:
        found = await fetch_all(connection, statement("taken_ids"), {"ids": list(ids)})
        return {row["id"] for row in found}

    common = scope(key) | {"parser_hash": parser_hash}
    ids = await fresh_ids(key, [file.source for file in plan.added], taken)
    added = rows.file_columns(plan.added) | {"ids": [ids[file.source] for file in plan.added]}
    moves = [update for update in plan.updates if update.kind == "moved"]
    for name, columns in (
        ("bury", {"ids": [row.id for row in plan.gone]}),
        ("update_documents", rows.update_columns(plan.updates)),
        ("insert_documents", added),
        ("insert_moves", rows.move_columns(moves)),
    ):
        if columns["ids"]:
            await connection.execute(statement(name), common | columns)
