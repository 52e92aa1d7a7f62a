"""A worker in a process of its own: python -m tests.integration.ingest.ledger_worker HOME TENANT
LEASE_S [STEP]. It prints the pages that it reads, the documents that it finishes; dies at STEP."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import numpy as np

from ingest.ledger.postgres import PostgresLedger
from ingest.ledger.records import Claim
from ragplane.core.config import Settings
from retrieval.stores.base import CorpusKey, Store
from retrieval.stores.database import Database
from retrieval.stores.postgres import PostgresStore
from tests.integration.ingest.ledger_kit import raw_page, result

PAGES = ["one", "two", "three"]
STEPS = ["claimed", "page 2", "parsed", "embedded", "stored", "finished", "deleted"]


async def main(home: str, tenant: str, lease_s: str, dies_at: str = "") -> None:
    database = await Database.open(Settings(home=Path(home)))
    ledger, store = PostgresLedger(database.connections), PostgresStore(database)
    key = CorpusKey(tenant, "manuals")
    worker, lease = str(os.getpid()), float(lease_s)
    while claims := await ledger.claim(key, worker, lease_s=lease, limit=2):
        for claim in claims:
            step("claimed", dies_at)
            work = delete if claim.tombstone else ingest
            await work(ledger, store, claim, dies_at)
            print("finished", claim.document_id, flush=True)
            step("finished", dies_at)
    await database.aclose()


async def ingest(ledger: PostgresLedger, store: Store, claim: Claim, dies_at: str) -> None:
    sha256 = claim.sha256 or ""
    known = await ledger.finished_pages(claim, sha256)
    for number in range(1, len(PAGES) + 1):
        if number not in known:
            print("read", claim.document_id, number, flush=True)
            await ledger.finish_pages(claim, sha256, [raw_page(number)])
        step(f"page {number}", dies_at)
    done = result(claim, [f"{claim.source} {text}" for text in PAGES])
    await ledger.finish_parsing(claim, done)
    step("parsed", dies_at)
    vectors = np.random.default_rng(1).normal(size=(len(PAGES), 8)).astype(np.float32)
    step("embedded", dies_at)
    await store.replace_document(done.document, done.pages, done.chunks, vectors)
    step("stored", dies_at)
    await ledger.finish_document(claim, done)


async def delete(ledger: PostgresLedger, store: Store, claim: Claim, dies_at: str) -> None:
    await store.delete_document(claim.key, claim.document_id)
    step("deleted", dies_at)
    await ledger.finish_deletion(claim)


def step(name: str, dies_at: str) -> None:
    if name == dies_at:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
