"""What maintenance asks of every ledger: which corpora there are."""

from __future__ import annotations

from uuid import uuid4

from ingest.ledger.base import Ledger
from retrieval.stores.base import CorpusKey
from tests.integration.ingest.ledger_kit import file, list_and_claim, listing


async def test_corpora_are_listed_by_tenant(ledger: Ledger, key: CorpusKey) -> None:
    """Behaviour 25: also one in which nothing was read, and one without documents."""
    assert await ledger.corpora(key.tenant) == []
    names = ["b", "a", "Z", "ä"]
    for name in names:
        await ledger.sync(CorpusKey(key.tenant, name), listing(file("a", "a")), "p1")
    await ledger.start_run(CorpusKey(key.tenant, "empty"))
    await ledger.sync(CorpusKey(uuid4().hex, "other"), listing(file("a", "a")), "p1")
    assert await ledger.corpora(key.tenant) == sorted([*names, "empty"])


async def test_a_corpus_whose_documents_are_gone_is_listed_while_it_has_runs(
    ledger: Ledger, key: CorpusKey
) -> None:
    """Behaviour 22."""
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    await ledger.release(claim)
    await ledger.tombstone(key, {claim.source})
    [tombstone] = await ledger.claim(key, "w", lease_s=30, limit=1)
    await ledger.finish_deletion(tombstone)
    assert await ledger.corpora(key.tenant) == []
    await ledger.start_run(key)
    assert await ledger.corpora(key.tenant) == [key.corpus]
