"""What a tenant spent on vision models, over runs and workers: every ledger counts it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import uuid4

import psycopg

from ingest.ledger.base import Ledger
from ingest.ledger.postgres import PostgresLedger
from ingest.ledger.records import Claim
from ingest.parsed import ParseResult
from retrieval.stores.base import CorpusKey
from tests.integration.ingest.ledger_kit import (
    claim_some,
    file,
    list_and_claim,
    raw_page,
    result,
    sha,
)


def spending(claim: Claim, *tokens: int) -> ParseResult:
    """A parsed document whose pages cost that much."""
    parsed = result(claim, [str(number) for number in range(len(tokens))])
    pages = [
        replace(page, vlm_tokens=count) for page, count in zip(parsed.pages, tokens, strict=True)
    ]
    return replace(parsed, pages=tuple(pages))


async def test_spending_is_counted_over_documents_corpora_and_workers(
    ledger: Ledger, key: CorpusKey
) -> None:
    """Behaviour 3: by tenant; a page that was taken from its checkpoint costs nothing more."""
    assert await ledger.vision_tokens(key.tenant) == 0
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    await ledger.finish_pages(claim, sha("a"), [raw_page(1, vlm_tokens=700), raw_page(2)])
    assert await ledger.vision_tokens(key.tenant) == 705
    await ledger.finish_parsing(claim, spending(claim, 700, 5))
    await ledger.finish_document(claim, spending(claim, 700, 5))
    assert await ledger.vision_tokens(key.tenant) == 705

    other = CorpusKey(key.tenant, "other")
    [claim] = await list_and_claim(ledger, other, file("b", "b"), worker="v")
    await ledger.finish_pages(claim, sha("b"), [raw_page(1, vlm_tokens=40)])
    assert await ledger.vision_tokens(key.tenant) == 745
    assert await ledger.vision_tokens(uuid4().hex) == 0


async def test_pages_that_have_no_checkpoint_are_counted_when_they_are_parsed(
    ledger: Ledger, key: CorpusKey
) -> None:
    """Behaviour 3: those of a file attached to a mail, each time that they are read."""
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    await ledger.finish_parsing(claim, spending(claim, 100, 0))
    await ledger.finish_document(claim, spending(claim, 100, 0))
    await ledger.requeue(key, [claim.document_id])
    [again] = await claim_some(ledger, key)
    await ledger.finish_parsing(again, spending(again, 100, 0))
    assert await ledger.vision_tokens(key.tenant) == 200


async def test_what_a_page_cost_stays_counted_when_it_is_read_again_or_goes(
    ledger: Ledger, key: CorpusKey
) -> None:
    """Behaviour 3."""
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    for seconds in (1.0, 2.0):
        page = replace(raw_page(1, vlm_tokens=60), seconds=seconds)
        await ledger.finish_pages(claim, sha("a"), [page])
    await ledger.release(claim)
    await ledger.tombstone(key, [claim.source])
    [tombstone] = await claim_some(ledger, key)
    await ledger.finish_deletion(tombstone)
    assert await ledger.documents(key) == {}
    assert await ledger.vision_tokens(key.tenant) == 120


async def test_another_day_starts_at_nothing(
    opened_database, key: CorpusKey, conninfo: str
) -> None:
    """Behaviour 3: the budget is of a UTC day."""
    ledger = PostgresLedger(opened_database.connections)
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    await ledger.finish_pages(claim, sha("a"), [raw_page(1, vlm_tokens=60)])
    with psycopg.connect(conninfo) as other:
        other.execute(
            "update ragplane.ledger_vision set day = day - 1 where tenant = %s", (key.tenant,)
        )
    assert await ledger.vision_tokens(key.tenant) == 0
    await ledger.finish_pages(claim, sha("a"), [raw_page(2, vlm_tokens=7)])
    assert await ledger.vision_tokens(key.tenant) == 7


async def test_workers_that_spend_at_once_lose_no_token(opened_database, key: CorpusKey) -> None:
    """Behaviour 3."""
    ledger = PostgresLedger(opened_database.connections)
    files = [file(str(number), str(number)) for number in range(8)]
    claims = await list_and_claim(ledger, key, *files)
    await asyncio.gather(
        *(
            ledger.finish_pages(claim, "x", [raw_page(number, vlm_tokens=1)])
            for claim in claims
            for number in range(1, 6)
        )
    )
    assert await ledger.vision_tokens(key.tenant) == 40
