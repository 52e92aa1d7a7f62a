import string
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.ledger.decisions import (
    after_release,
    fresh_ids,
    is_below,
    is_same_stat,
    plan_sync,
    storable,
    trusted_mtime,
    wants_hash,
)
from ingest.ledger.records import DocumentRow, SourceFile, SourceListing
from retrieval.stores.base import CorpusKey

_STATUSES = ["pending", "claimed", "parsed", "done", "partial", "failed", "tombstone"]
_sources = st.sampled_from([f"file:///d/{name}" for name in string.ascii_lowercase[:6]])
_contents = st.sampled_from(["1", "2", "3"])


def _row(source: str, sha256: str | None = "1", status: str = "done", **values) -> DocumentRow:
    row = {
        "id": UUID(int=hash((source, "id")) % 2**128),
        "size_bytes": 5,
        "mtime_ns": 1,
        "parser_hash": "p1",
        "generation": 3,
        "stored_generation": 3,
        "attempts": 0,
    }
    return DocumentRow(source=source, sha256=sha256, status=status, **row | values)


_files = st.builds(
    SourceFile,
    _sources,
    st.just(5),
    st.none() | st.integers(1, 2),
    st.none() | _contents,
)
_rows = st.builds(_row, _sources, st.none() | _contents, st.sampled_from(_STATUSES))


@given(
    st.lists(_files, unique_by=lambda file: file.source),
    st.lists(_rows, unique_by=lambda row: row.source),
    st.sampled_from([(), ("file:///d",), ("file:///d/",), ("file:///other",)]),
    st.sampled_from(["p1", "p2"]),
)
def test_a_plan_accounts_for_everything_once(files, rows, folders, parser_hash) -> None:
    """Behaviour 22."""
    listing = SourceListing(tuple(files), folders)
    known = {row.source: row for row in rows}
    plan = plan_sync(listing, known, parser_hash)
    listed = {file.source for file in files}
    planned = [file.source for file in plan.added]
    planned += [update.file.source for update in plan.updates]
    assert sorted(planned) == sorted(listed)
    touched = [update.document.id for update in plan.updates] + [row.id for row in plan.gone]
    assert len(touched) == len(set(touched))
    assert all(row.source not in listed and row.status != "tombstone" for row in plan.gone)
    if folders in ((), ("file:///other",)):
        assert plan.gone == ()
        assert all(update.kind != "moved" for update in plan.updates)
    else:
        moved = {u.document.source for u in plan.updates if u.kind == "moved"}
        left = {row.source for row in rows if row.status != "tombstone"} - listed
        assert {row.source for row in plan.gone} | moved == left
    for update in plan.updates:
        if update.kind == "moved":
            assert update.file.sha256 == update.document.sha256
        assert update.generation - update.document.generation in (0, 1)
        assert update.requeue or update.generation == update.document.generation
    report = plan.report(len(listed))
    counts = (report.added, report.changed, report.stale, report.moved, report.unchanged)
    assert sum(counts) == len(listed)
    assert min(counts) >= 0


@pytest.mark.parametrize(
    ("sha256", "mtime_ns", "same", "wanted"),
    [
        (None, 1, True, False),
        (None, 2, False, True),
        (None, None, False, True),
        ("1", 2, False, False),
    ],
)
def test_what_size_and_time_say(sha256, mtime_ns, same, wanted) -> None:
    file = SourceFile("a", 5, mtime_ns, sha256)
    assert is_same_stat(_row("a"), file) is same
    assert wants_hash(_row("a"), file) is wanted
    assert wants_hash(None, file) is (sha256 is None)


def test_a_recent_time_is_not_trusted() -> None:
    assert trusted_mtime(1_000_000_000, 3_000_000_000) == 1_000_000_000
    assert trusted_mtime(1_000_000_001, 3_000_000_000) is None
    assert trusted_mtime(9_000_000_000, 3_000_000_000) is None


@pytest.mark.parametrize(
    ("source", "folder", "below"),
    [
        ("s3://b/k/x", "s3://b/k", True),
        ("s3://b/k/x/y", "s3://b/k/", True),
        ("s3://b/kk", "s3://b/k", False),
        ("file:///x", "file:///", True),
    ],
)
def test_below_a_folder(source, folder, below) -> None:
    assert is_below(source, [folder]) is below


async def test_a_taken_id_is_passed_over() -> None:
    key, rounds = CorpusKey("t", "c"), []

    async def taken(ids):
        rounds.append(list(ids))
        return [] if len(rounds) == 3 else list(ids)[:1]

    ids = await fresh_ids(key, ["a", "b"], taken)
    assert ids["b"] == rounds[0][1]
    assert ids["a"] == rounds[2][0]
    assert [len(asked) for asked in rounds] == [2, 1, 1]


@pytest.mark.parametrize("status", _STATUSES)
def test_after_a_release(status) -> None:
    assert after_release(status) == ("pending" if status == "claimed" else status)


@given(st.text(st.characters()))
def test_storable_text_can_be_stored(text) -> None:
    assert "\x00" not in storable(text)
    assert storable(text).encode("utf-8") or not text.strip("\x00")
