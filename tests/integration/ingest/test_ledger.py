"""What every ledger must do: the one in PostgreSQL, and its twin in memory."""

import asyncio
from dataclasses import replace

import pytest

from ingest.ledger.records import LeaseLostError, SyncReport
from ragplane.core.errors import StageError
from retrieval.stores.base import CorpusKey
from tests.integration.ingest.ledger_kit import (
    FOLDER,
    SIGNALS,
    claim_some,
    file,
    list_and_claim,
    listing,
    raw_page,
    read_and_store,
    result,
    sha,
    statuses,
)

ERROR = StageError("embed", "ConnectError http://127.0.0.1:1")


async def test_an_empty_corpus(ledger, key):
    assert await ledger.documents(key) == {}
    assert await ledger.manifest(key) == {}
    assert await claim_some(ledger, key) == []
    assert await ledger.errors(key, 5) == []
    assert await ledger.runs(key, 5) == []
    assert [row async for row in ledger.triage_rows(key)] == []
    status = await ledger.status(key)
    assert (status.documents, status.stages, status.pages, status.writes) == ({}, {}, {}, 0)
    assert await ledger.sync(key, listing(), "p1") == SyncReport()


async def test_a_document_that_moves_while_it_is_read_is_read_again(ledger, key):
    [claim] = await list_and_claim(ledger, key, file("a", "same"))
    await ledger.finish_pages(claim, sha("same"), [raw_page(1)])
    assert (await ledger.sync(key, listing(file("b", "same")), "p1")).moved == 1
    with pytest.raises(LeaseLostError, match=r"file:///d/a its lease was lost"):
        await ledger.finish_document(claim, result(claim, ["one"]))
    await ledger.release(claim)
    [again] = await claim_some(ledger, key)
    assert (again.source, again.document_id) == (f"{FOLDER}/b", claim.document_id)
    assert await ledger.finished_pages(again, sha("same")) == {1: raw_page(1)}


async def test_claims_exclude_each_other(ledger, key):
    """Behaviour 20."""
    files = [file(str(number), str(number)) for number in range(40)]
    await ledger.sync(key, listing(*files), "p1")

    async def worker(name):
        got = []
        while claims := await claim_some(ledger, key, name, limit=3):
            got += [claim.document_id for claim in claims]
        return got

    claimed = await asyncio.gather(*(worker(f"w{n}") for n in range(5)))
    ids = [id_ for got in claimed for id_ in got]
    assert len(ids) == len(set(ids)) == 40


async def test_a_stalled_lease_is_taken_over_and_the_old_worker_is_refused(ledger, key, kept):
    """Behaviour 20: every commit checks the fencing token."""
    [old] = await list_and_claim(ledger, key, file("a", "a"), lease_s=0.3)
    assert await claim_some(ledger, key, "new") == []
    await kept.wait(0.35)
    await ledger.renew(old, 0.3)  # late, but nobody came
    assert await claim_some(ledger, key, "new") == []
    await kept.wait(0.35)
    [new] = await claim_some(ledger, key, "new")
    assert (new.token, new.attempts) == (old.token + 1, 2)
    for commit in (
        ledger.renew(old, 60),
        ledger.finish_pages(old, sha("a"), [raw_page(1)]),
        ledger.finish_parsing(old, result(old, ["x"])),
        ledger.finish_document(old, result(old, ["old"])),
        ledger.fail(old, ERROR),
    ):
        with pytest.raises(LeaseLostError):
            await commit
    await ledger.release(old)
    await ledger.finish_deletion(old)
    assert await ledger.finished_pages(new, sha("a")) == {}
    await ledger.finish_document(new, result(new, ["new"]))
    assert {fact.text_sha256 for fact in (await ledger.manifest(key)).values()} == {sha("new")}
    with pytest.raises(LeaseLostError):
        await ledger.finish_document(old, result(old, ["old"]))


async def test_a_document_that_changes_while_it_is_read_is_read_again(ledger, key):
    """Behaviour 20: and not before its worker has let go, who may be writing to the store."""
    [claim] = await list_and_claim(ledger, key, file("a", "old"))
    assert (await ledger.sync(key, listing(file("a", "new")), "p1")).changed == 1
    assert await claim_some(ledger, key, "other") == []
    with pytest.raises(LeaseLostError):
        await ledger.finish_pages(claim, sha("old"), [raw_page(1)])
    await ledger.release(claim)
    [again] = await claim_some(ledger, key, "other")
    assert (again.sha256, again.generation) == (sha("new"), 2)


async def test_a_document_that_goes_while_it_is_read_is_deleted(ledger, key):
    [claim] = await list_and_claim(ledger, key, file("a", "old"))
    await ledger.sync(key, listing(), "p1")
    with pytest.raises(LeaseLostError):
        await ledger.finish_document(claim, result(claim, ["old"]))
    await ledger.release(claim)
    [deletion] = await claim_some(ledger, key)
    assert deletion.tombstone


async def test_a_document_given_back_keeps_its_attempts(ledger, key):
    """Behaviour 28: the encoder was down; nothing parsed is lost, no attempt is spent."""
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    await ledger.finish_pages(claim, sha("a"), [raw_page(1), raw_page(2)])
    await ledger.finish_parsing(claim, result(claim, ["x"]))
    assert await statuses(ledger, key) == {"a": "parsed"}
    await ledger.release(claim)
    assert await statuses(ledger, key) == {"a": "parsed"}
    assert (await ledger.waiting())[key] == 1
    [again] = await claim_some(ledger, key)
    assert again.attempts == 1
    assert await ledger.finished_pages(again, sha("a")) == {1: raw_page(1), 2: raw_page(2)}


async def test_finished_pages_are_of_this_content_and_configuration(ledger, key):
    """Behaviour 21."""
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    failed = raw_page(2, error=StageError("ocr", "no memory", page=2), paragraphs=())
    await ledger.finish_pages(claim, sha("a"), [raw_page(1), failed])
    await ledger.finish_pages(claim, sha("a"), [raw_page(3)])
    assert set(await ledger.finished_pages(claim, sha("a"))) == {1, 3}
    assert await ledger.finished_pages(claim, sha("b")) == {}
    assert await ledger.finished_pages(replace(claim, parser_hash="p2"), sha("a")) == {}
    await ledger.finish_pages(claim, sha("a"), [raw_page(2)])
    await ledger.finish_document(claim, result(claim, ["one", "two", "three"]))
    assert set(await ledger.finished_pages(claim, sha("a"))) == {1, 2, 3}
    await ledger.sync(key, listing(file("a", "new")), "p1")
    [claim] = await claim_some(ledger, key)
    await ledger.finish_document(claim, result(claim, ["one"]))
    assert [row.number async for row in ledger.triage_rows(key)] == [1]
    assert await ledger.finished_pages(claim, sha("new")) == {}


async def test_what_failed_waits_for_the_next_run(ledger, key):
    """Behaviour 28."""
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    await ledger.fail(claim, ERROR)
    assert await statuses(ledger, key) == {"a": "failed"}
    assert await claim_some(ledger, key) == []
    assert await ledger.sync(key, listing(file("a", "a")), "p1") == SyncReport(unchanged=1)
    assert await ledger.retry(key) == 1
    [claim] = await claim_some(ledger, key)
    assert (claim.attempts, claim.stored_generation) == (1, 0)
    assert await ledger.errors(key, 5) == []


async def test_a_document_that_kills_its_workers_is_given_up(ledger, key, kept):
    """Behaviour 26."""
    await ledger.sync(key, listing(file("a", "a"), file("b", "b")), "p1")
    for _ in range(2):
        [claim] = await claim_some(ledger, key, lease_s=0.2, limit=1, max_attempts=2)
        assert claim.source == f"{FOLDER}/a"
        await kept.wait(0.25)
    [claim] = await claim_some(ledger, key, max_attempts=2)
    assert claim.source == f"{FOLDER}/b"
    [error] = await ledger.errors(key, 5)
    assert (error.source, error.page, error.stage) == (f"{FOLDER}/a", None, "parse")
    assert error.cause == "its worker died 2 times"


async def test_leases_of_dead_workers_end_at_once(ledger, key):
    """Behaviour 20."""
    [claim] = await list_and_claim(ledger, key, file("a", "a"))
    [holder] = await ledger.holders(key)
    assert await ledger.expire(key, ["somebody else"]) == 0
    assert await claim_some(ledger, key) == []
    assert await ledger.expire(key, [holder]) == 1
    [again] = await claim_some(ledger, key)
    assert again.token > claim.token
    with pytest.raises(LeaseLostError):
        await ledger.finish_parsing(claim, result(claim, ["x"]))


async def test_a_new_document_waits_for_a_move_that_the_store_has_yet_to_take(ledger, key, kept):
    """Behaviour 22: it may stand where the moved one still is."""
    await read_and_store(ledger, key, file("a", "same"))
    assert (await ledger.sync(key, listing(file("b", "same")), "p1")).moved == 1
    assert (await ledger.sync(key, listing(file("b", "same"), file("a", "new")), "p1")).added == 1
    assert await claim_some(ledger, key) == []
    writes = await kept.outbox.take(key, "w", lease_s=60, limit=10)
    await kept.outbox.acknowledge(key, [write.id for write in writes])
    [claim] = await claim_some(ledger, key)
    assert claim.source == f"{FOLDER}/a"


async def test_a_claim_is_read_under_the_configuration_of_its_worker(ledger, key):
    """Behaviour 21."""
    await ledger.sync(key, listing(file("a", "a")), "p1")
    [claim] = await ledger.claim(key, "w", lease_s=60, limit=1, parser_hash="p2")
    assert claim.parser_hash == "p2"
    await ledger.finish_document(claim, result(claim, ["one"]))
    assert (await ledger.sync(key, listing(file("a", "a")), "p1")).stale == 1


async def test_documents_are_queued_again_to_be_mended(ledger, key):
    """Behaviour 24."""
    await read_and_store(ledger, key, file("a", "a"))
    [row] = (await ledger.documents(key)).values()
    assert await ledger.requeue(key, [row.id]) == 1
    assert await ledger.requeue(key, [row.id]) == 0  # it waits
    [claim] = await claim_some(ledger, key)
    assert claim.generation == row.generation


async def test_a_deletion_is_never_given_up(ledger, key, kept):
    await read_and_store(ledger, key, file("a", "a"))
    await ledger.tombstone(key, [f"{FOLDER}/a"])
    for _ in range(3):
        assert len(await claim_some(ledger, key, lease_s=0.1, max_attempts=1)) == 1
        await kept.wait(0.15)
    assert await statuses(ledger, key) == {"a": "tombstone"}


async def test_status_and_errors_name_stages(ledger, key):
    """Behaviour 25."""
    files = [file(name, name) for name in "abcd"]
    a, b, c, _ = await list_and_claim(ledger, key, *files)
    await ledger.finish_document(a, result(a, ["one", "two"]))
    await ledger.finish_document(b, result(b, ["one", "two", "three"], failed=2))
    await ledger.fail(c, StageError("parse", "en\x00crypted \udc80"))
    status = await ledger.status(key)
    assert status.documents == {"done": 1, "partial": 1, "failed": 1, "claimed": 1}
    assert status.stages == {"parse": 1, "ocr": 1}
    assert status.pages == {"ocr": 5}
    assert status.errors == tuple(await ledger.errors(key, 9))
    last, first = status.errors
    assert (last.source, last.page, last.stage) == (f"{FOLDER}/c", None, "parse")
    assert last.cause == "encrypted ?"
    assert (first.source, first.page, first.stage) == (f"{FOLDER}/b", 2, "ocr")
    assert len(await ledger.errors(key, 1)) == 1
    assert await ledger.retry(key) == 2


async def test_triage_rows_can_be_replayed(ledger, key):
    """Behaviour 1: signals, decision, cost and outcome of each page."""
    a, b = await list_and_claim(ledger, key, file("a", "a"), file("b", "b"))
    await ledger.finish_pages(a, sha("a"), [raw_page(1)])
    await ledger.finish_document(b, result(b, ["one", "two"], failed=2))
    found = {(row.source[-1], row.number): row async for row in ledger.triage_rows(key)}
    assert set(found) == {("a", 1), ("b", 1), ("b", 2)}
    for row in found.values():
        assert (row.route, row.reason, row.signals) == ("ocr", "a scan", SIGNALS)
        assert (row.seconds, row.vlm_tokens, row.confidence) == (0.25, 5, 0.5)
    assert found["b", 1].error is None
    assert found["b", 2].error.stage == "ocr"


async def test_runs_are_kept_and_a_killed_one_shows(ledger, key):
    """Behaviour 25."""
    first = await ledger.start_run(key)
    await ledger.end_run(first, "completed_with_errors", {"documents": {"done": 3, "failed": 1}})
    second = await ledger.start_run(key)
    last, before = await ledger.runs(key, 5)
    assert (last.id, last.ended_at, last.status) == (second, None, None)
    assert (before.id, before.status) == (first, "completed_with_errors")
    assert before.totals == {"documents": {"done": 3, "failed": 1}}
    assert before.started_at <= before.ended_at <= last.started_at
    assert len(await ledger.runs(key, 1)) == 1


async def test_nothing_reaches_across_corpora(ledger, key):
    await read_and_store(ledger, key, file("a", "a"))
    other = CorpusKey(key.tenant, "other")
    assert await ledger.sync(other, listing(), "p1") == SyncReport()
    assert await ledger.sync(other, listing(file("b", "a")), "p1") == SyncReport(added=1)
    assert await statuses(ledger, key) == {"a": "done"}
    assert await claim_some(ledger, key) == []
    assert await ledger.tombstone(other, [f"{FOLDER}/a"]) == 0
    assert await ledger.retry(other) == 0
    assert len(await ledger.manifest(key)) == 2
    assert await ledger.manifest(other) == {}
    waiting = await ledger.waiting()
    assert (waiting.get(key), waiting[other]) == (None, 1)
