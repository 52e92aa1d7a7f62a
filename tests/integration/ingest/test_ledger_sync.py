"""What a sync makes of a listing, in every ledger."""

from dataclasses import replace

from ingest.identity import document_id
from ingest.ledger.records import SyncReport
from retrieval.stores.base import PointFact
from tests.integration.ingest.ledger_kit import (
    FOLDER,
    claim_some,
    file,
    listing,
    read_and_store,
    result,
    sha,
    statuses,
)


async def test_new_files_are_queued_in_their_order(ledger, key):
    files = [file(name, name) for name in ("b", "a", "c")]
    assert await ledger.sync(key, listing(*files), "p1") == SyncReport(added=3)
    claims = [*await claim_some(ledger, key, limit=2), *await claim_some(ledger, key, limit=2)]
    assert [claim.source[-1] for claim in claims] == ["b", "a", "c"]
    first = claims[0]
    assert first.document_id == document_id(key.tenant, key.corpus, f"{FOLDER}/b")
    assert (first.key, first.sha256, first.parser_hash) == (key, sha("b"), "p1")
    assert (first.generation, first.attempts, first.tombstone) == (1, 1, False)


async def test_a_second_sync_finds_nothing_to_do(ledger, key):
    """Behaviour 19."""
    await read_and_store(ledger, key, file("a", "a"), file("b", "b"))
    before = await ledger.documents(key)
    assert await ledger.unhashed(key, listing(file("a"), file("b"))) == {
        f"{FOLDER}/a",
        f"{FOLDER}/b",
    }
    same = listing(*(replace(file(name, name), sha256=None) for name in ("a", "b")))
    assert await ledger.unhashed(key, same) == set()
    assert await ledger.sync(key, same, "p1") == SyncReport(unchanged=2)
    assert await ledger.documents(key) == before
    assert await claim_some(ledger, key) == []


async def test_only_new_files_and_other_times_or_sizes_are_hashed(ledger, key):
    await ledger.sync(key, listing(*(file(name, "content") for name in "abcd")), "p1")
    files = listing(
        file("a"), file("b", mtime_ns=2), file("c", mtime_ns=None), file("new"), file("d", "other")
    )
    wanted = await ledger.unhashed(key, files)
    assert {source[-1] for source in wanted} == {"b", "c", "w"}


async def test_a_touched_file_is_unchanged_and_its_new_time_is_kept(ledger, key):
    await read_and_store(ledger, key, file("a", "a"))
    touched = file("a", "a", mtime_ns=9)
    assert await ledger.sync(key, listing(touched), "p1") == SyncReport(unchanged=1)
    assert await ledger.unhashed(key, listing(replace(touched, sha256=None))) == set()
    assert await statuses(ledger, key) == {"a": "done"}


async def test_an_update_is_the_next_generation(ledger, key):
    """Behaviour 22."""
    await read_and_store(ledger, key, file("a", "a"))
    assert await ledger.sync(key, listing(file("a", "new")), "p1") == SyncReport(changed=1)
    [row] = (await ledger.documents(key)).values()
    assert (row.status, row.generation, row.stored_generation) == ("pending", 2, 1)
    assert {fact.generation for fact in (await ledger.manifest(key)).values()} == {1}
    [claim] = await claim_some(ledger, key)
    assert (claim.generation, claim.sha256) == (2, sha("new"))
    done = result(claim, ["three"])
    await ledger.finish_document(claim, done)
    assert await ledger.manifest(key) == {
        done.chunks[0].id: PointFact(claim.document_id, 2, sha("three"))
    }
    [row] = (await ledger.documents(key)).values()
    assert (row.status, row.generation, row.stored_generation) == ("done", 2, 2)


async def test_another_parser_configuration_makes_documents_stale(ledger, key):
    """Behaviour 21."""
    await read_and_store(ledger, key, file("a", "a"))
    files = listing(file("a", "a"))
    assert await ledger.sync(key, files, "p2") == SyncReport(stale=1)
    [claim] = await claim_some(ledger, key)
    assert (claim.generation, claim.parser_hash, claim.sha256) == (2, "p2", sha("a"))
    assert await ledger.sync(key, files, "p2") == SyncReport(unchanged=1)


async def test_without_hashes_size_and_time_decide(ledger, key):
    await ledger.sync(key, listing(file("a"), file("b"), file("c", mtime_ns=None)), "p1")
    assert await ledger.sync(key, listing(file("a"), file("b", mtime_ns=2)), "p1") == SyncReport(
        changed=1, unchanged=1, gone=1
    )


async def test_what_is_gone_is_deleted_only_below_folders_listed_whole(ledger, key):
    """Behaviour 22."""
    await read_and_store(ledger, key, file("a", "a"), file("b", "b"))
    assert await ledger.sync(key, listing(file("a", "a"), whole=False), "p1") == SyncReport(
        unchanged=1
    )
    beside = replace(listing(file("a", "a")), complete_folders=("file:///dd", f"{FOLDER}/b"))
    assert (await ledger.sync(key, beside, "p1")).gone == 0
    assert (await ledger.sync(key, listing(file("a", "a")), "p1")).gone == 1
    assert (await ledger.sync(key, listing(file("a", "a")), "p1")).gone == 0
    assert await statuses(ledger, key) == {"a": "done", "b": "tombstone"}
    assert len(await ledger.manifest(key)) == 2
    [claim] = await claim_some(ledger, key)
    assert (claim.tombstone, claim.source) == (True, f"{FOLDER}/b")
    assert await statuses(ledger, key) == {"a": "done", "b": "tombstone"}
    await ledger.finish_deletion(claim)
    assert await statuses(ledger, key) == {"a": "done"}


async def test_a_deletion_by_hand(ledger, key):
    await read_and_store(ledger, key, file("a", "a"), file("b", "b"))
    assert await ledger.tombstone(key, [f"{FOLDER}/a", f"{FOLDER}/none"]) == 1
    assert await ledger.tombstone(key, [f"{FOLDER}/a"]) == 0
    assert await statuses(ledger, key) == {"a": "tombstone", "b": "done"}


async def test_a_file_that_comes_back_while_it_is_deleted(ledger, key):
    """Behaviour 22: the deletion ends before the document is read again."""
    await read_and_store(ledger, key, file("a", "a"))
    await ledger.tombstone(key, [f"{FOLDER}/a"])
    [deletion] = await claim_some(ledger, key)
    assert await ledger.sync(key, listing(file("a", "a")), "p1") == SyncReport(added=1)
    assert await claim_some(ledger, key) == []
    await ledger.finish_deletion(deletion)
    [claim] = await claim_some(ledger, key)
    assert (claim.document_id, claim.generation, claim.tombstone) == (
        deletion.document_id,
        2,
        False,
    )


async def test_a_moved_document_keeps_its_id(ledger, key, kept):
    """Behaviour 19: ids stay, the store is told, and a new file at the old place is another."""
    await read_and_store(ledger, key, file("a", "same"), file("b", "other"))
    points = await ledger.manifest(key)
    moved = listing(file("z", "same", mtime_ns=5), file("b", "other"))
    assert await ledger.sync(key, moved, "p1") == SyncReport(moved=1, unchanged=1)
    row = (await ledger.documents(key))[f"{FOLDER}/z"]
    assert row.id == document_id(key.tenant, key.corpus, f"{FOLDER}/a")
    assert (row.status, row.generation, row.mtime_ns) == ("done", 1, 5)
    assert await ledger.manifest(key) == points
    assert await claim_some(ledger, key) == []
    [write] = await kept.outbox.take(key, "r", lease_s=60, limit=5)
    assert (write.document_id, write.source) == (row.id, "file:///d/z")
    again = listing(*moved.files, file("a", "third"))
    assert await ledger.sync(key, again, "p1") == SyncReport(added=1, unchanged=2)
    ids = {row.id for row in (await ledger.documents(key)).values()}
    assert len(ids) == 3


async def test_what_could_be_a_copy_is_no_move(ledger, key):
    await read_and_store(ledger, key, file("a", "same"))
    both = listing(file("a", "same"), file("b", "same"))
    assert await ledger.sync(key, both, "p1") == SyncReport(added=1, unchanged=1)
    elsewhere = listing(file("c", "same"), whole=False)
    assert await ledger.sync(key, elsewhere, "p1") == SyncReport(added=1)
    two_gone = listing(file("d", "same"), file("e", "same"), file("f", "same"), file("g", "same"))
    assert await ledger.sync(key, two_gone, "p1") == SyncReport(added=1, moved=3)


async def test_two_files_that_change_places_are_changed(ledger, key):
    await read_and_store(ledger, key, file("a", "1"), file("b", "2"))
    swapped = listing(file("a", "2"), file("b", "1"))
    assert await ledger.sync(key, swapped, "p1") == SyncReport(changed=2)
