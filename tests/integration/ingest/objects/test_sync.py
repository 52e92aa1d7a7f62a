"""What a sync of a bucket makes of it, in every ledger, and what it fetches for that."""

from __future__ import annotations

from pathlib import Path

from ingest.ledger.base import Ledger
from ingest.ledger.files import add_hashes, stat_files
from ingest.ledger.records import SyncReport
from ingest.objects.address import Address
from ingest.sources import list_sources
from retrieval.stores.base import CorpusKey
from tests.integration.ingest.ledger_kit import claim_some, result, sha
from tests.integration.ingest.s3_server import PAGE_KEYS, Bucket


async def sync(ledger: Ledger, key: CorpusKey, *paths: str | Path) -> SyncReport:
    """As a run does it."""
    listing = list_sources(paths)
    stats = stat_files(listing)
    files = add_hashes(stats, listing, await ledger.unhashed(key, stats))
    return await ledger.sync(key, files, "p1")


async def store(ledger: Ledger, key: CorpusKey, **contents: str) -> list[str]:
    """Finish every claim, given contents by key; the keys of those to be read."""
    claims = await claim_some(ledger, key)
    read = []
    for claim in claims:
        if claim.tombstone:
            await ledger.finish_deletion(claim)
            continue
        name = Address.parse(claim.source).key
        read.append(name)
        await ledger.finish_document(claim, result(claim, [contents[name]]))
    return read


async def test_new_unchanged_changed_gone(ledger: Ledger, key: CorpusKey, bucket: Bucket) -> None:
    """Behaviours 19, 22: nothing is fetched to say so."""
    names = [f"{number}.md" for number in range(2 * PAGE_KEYS)]
    bucket.put(**{name: name for name in names})
    assert await sync(ledger, key, bucket.uri()) == SyncReport(added=len(names))
    assert sorted(await store(ledger, key, **{name: name for name in names})) == names
    assert await sync(ledger, key, bucket.uri()) == SyncReport(unchanged=len(names))
    assert await store(ledger, key) == []

    bucket.put(**{"0.md": "new!", "7.md": "seven"})
    bucket.delete("1.md")
    assert await sync(ledger, key, bucket.uri()) == SyncReport(
        added=1, changed=1, unchanged=len(names) - 2, gone=1
    )
    row = (await ledger.documents(key))[bucket.uri("0.md")]
    assert (row.status, row.generation, row.stored_generation) == ("pending", 2, 1)
    contents = {"0.md": "new!", "7.md": "seven"}
    assert sorted(await store(ledger, key, **contents)) == ["0.md", "7.md"]
    row = (await ledger.documents(key))[bucket.uri("0.md")]
    assert (row.status, row.sha256) == ("done", sha("new!"))
    assert await sync(ledger, key, bucket.uri()) == SyncReport(unchanged=len(names))
    assert bucket.fetched() == []


async def test_the_same_content_written_again_is_unchanged(
    ledger: Ledger, key: CorpusKey, bucket: Bucket
) -> None:
    """The store's time is another, its ETag is not."""
    bucket.put(a="text")
    await sync(ledger, key, bucket.uri())
    bucket.put(a="text")
    assert await sync(ledger, key, bucket.uri()) == SyncReport(unchanged=1)
    bucket.put(a="TEXT")
    assert await sync(ledger, key, bucket.uri()) == SyncReport(changed=1)


async def test_an_object_that_moved_is_found_by_its_content(
    ledger: Ledger, key: CorpusKey, bucket: Bucket
) -> None:
    """Behaviour 22: only what has the size of something that is gone is fetched."""
    bucket.put(old="moved", other="other text")
    await sync(ledger, key, bucket.uri())
    await store(ledger, key, old="moved", other="other text")
    before = (await ledger.documents(key))[bucket.uri("old")]
    bucket.move("old", "new/place")
    bucket.put(alike="alike", longer="longer text")
    bucket.server.requests()
    assert await sync(ledger, key, bucket.uri()) == SyncReport(added=2, moved=1, unchanged=1)
    assert sorted(bucket.fetched()) == ["alike", "new/place"]
    after = (await ledger.documents(key))[bucket.uri("new/place")]
    assert (after.id, after.status, after.generation) == (before.id, "done", 1)
    assert await sync(ledger, key, bucket.uri()) == SyncReport(unchanged=4)
    assert bucket.fetched() == []


async def test_an_etag_is_not_taken_for_a_hash(
    ledger: Ledger, key: CorpusKey, bucket: Bucket
) -> None:
    """An upload in parts has another ETag for the same content; it is found all the same."""
    bucket.put(old="moved")
    await sync(ledger, key, bucket.uri())
    await store(ledger, key, old="moved")
    bucket.delete("old")
    bucket.put_parts("new", b"moved")
    assert await sync(ledger, key, bucket.uri()) == SyncReport(moved=1)


async def test_a_document_moves_between_a_folder_and_a_bucket(
    ledger: Ledger, key: CorpusKey, bucket: Bucket, tmp_path: Path
) -> None:
    bucket.put(a="text")
    await sync(ledger, key, bucket.uri(), tmp_path)
    await store(ledger, key, a="text")
    bucket.delete("a")
    (tmp_path / "a").write_text("text")
    assert await sync(ledger, key, bucket.uri(), tmp_path) == SyncReport(moved=1)
    bucket.put(b="text")
    (tmp_path / "a").unlink()
    assert await sync(ledger, key, bucket.uri(), tmp_path) == SyncReport(moved=1)


async def test_nothing_is_gone_if_the_listing_broke_off_or_was_of_another_folder(
    ledger: Ledger, key: CorpusKey, bucket: Bucket
) -> None:
    """Behaviour 22."""
    names = [f"a/{number}" for number in range(PAGE_KEYS)] + ["a/last", "ab"]
    bucket.put(**{name: name for name in names})
    await sync(ledger, key, bucket.uri())
    bucket.delete("a/last", "ab")
    bucket.put(**{"a/also": "also"})
    bucket.server.refuse("GET", "continuation-token")
    assert (await sync(ledger, key, bucket.uri("a"))).gone == 0
    bucket.server.refuse("", "")
    assert (await sync(ledger, key, bucket.uri("a/0"))).gone == 0
    assert (await sync(ledger, key, bucket.uri("a"))).gone == 1
    assert (await ledger.documents(key))[bucket.uri("ab")].status == "pending"


async def test_a_folder_that_ends_in_two_slashes_says_nothing_of_its_parent(
    ledger: Ledger, key: CorpusKey, bucket: Bucket
) -> None:
    """Behaviour 22."""
    bucket.put(**{"a/b": "b", "a//c": "c"})
    assert await sync(ledger, key, bucket.uri("a")) == SyncReport(added=2)
    bucket.delete("a//c")
    assert await sync(ledger, key, bucket.uri("a//")) == SyncReport(gone=1)
