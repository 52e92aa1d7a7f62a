"""Objects, which have a version in place of a time, and which are fetched only if they may move."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from ingest.ledger.decisions import is_changed, is_same_stat, plan_sync, unhashed
from ingest.ledger.records import DocumentRow, SourceFile, SourceListing

FOLDER = "s3://b/"


def row(name: str, version: str | None = "1", size_bytes: int = 5) -> DocumentRow:
    source = f"{FOLDER}{name}"
    id_ = UUID(int=len(name) * 256 + ord(name[0]))
    return DocumentRow(id_, source, "done", size_bytes, None, name, "p1", 1, 1, 0, version)


def listed(name: str, version: str | None = "1", size_bytes: int = 5) -> SourceFile:
    return SourceFile(f"{FOLDER}{name}", size_bytes, None, version=version)


def names(sources: set[str]) -> str:
    return "".join(sorted(source.removeprefix(FOLDER) for source in sources))


@pytest.mark.parametrize(
    ("known", "found", "same"),
    [
        (row("a"), listed("a"), True),
        (row("a"), listed("a", "2"), False),
        (row("a", None), listed("a"), False),
        (row("a"), listed("a", size_bytes=6), False),
        (row("a", None), listed("a", None), False),
        (row("a"), listed("a", None), False),
    ],
)
def test_size_and_version_say_whether_an_object_is_the_same(
    known: DocumentRow, found: SourceFile, same: bool
) -> None:
    assert is_same_stat(known, found) is same
    assert is_changed(known, found) is not same


@pytest.mark.parametrize(
    ("folders", "files", "wanted"),
    [
        ((FOLDER,), [listed("a"), listed("b"), listed("c")], ""),
        ((FOLDER,), [listed("a", "2"), listed("b"), listed("c")], ""),
        ((FOLDER,), [listed("a"), listed("b"), listed("n"), listed("m", size_bytes=6)], "n"),
        ((FOLDER,), [listed("a", "2"), listed("n", size_bytes=6)], ""),
        ((), [listed("a"), listed("n")], ""),
        ((FOLDER,), [listed("a", None), listed("b"), listed("c"), listed("n", None)], "an"),
    ],
)
def test_a_new_object_is_hashed_if_one_of_its_size_is_gone(
    folders: tuple[str, ...], files: list[SourceFile], wanted: str
) -> None:
    """Behaviour 22. Without a version the content decides, as for a file without a time."""
    known = {document.source: document for document in map(row, "abc")}
    assert names(unhashed(SourceListing(tuple(files), folders), known)) == wanted


def test_an_object_that_was_never_read_cannot_have_moved() -> None:
    never = replace(row("a"), sha256=None)
    listing = SourceListing((listed("n"),), (FOLDER,))
    assert unhashed(listing, {never.source: never}) == set()


def test_what_was_deleted_by_hand_is_not_hashed_to_come_back() -> None:
    gone = row("a")
    buried = DocumentRow(gone.id, gone.source, "tombstone", 5, None, "a", "p1", 1, 1, 0, "1")
    listing = SourceListing((listed("a", "2"),), (FOLDER,))
    known = {buried.source: buried, row("b").source: row("b")}
    assert unhashed(listing, known) == set()
    [update] = plan_sync(listing, known, "p1").updates
    assert (update.kind, update.file.version) == ("added", "2")
