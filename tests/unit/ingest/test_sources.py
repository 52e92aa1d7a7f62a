"""Which files a run reads."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from ingest.sources import (
    Listing,
    file_name,
    hash_files,
    list_sources,
    source_of,
)
from ragplane.core.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """docs/ with a.txt, sub/b.txt, and hidden things."""
    docs = tmp_path / "docs"
    for name in ("a.txt", "sub/b.txt", ".hidden.txt", ".git/c.txt", "sub/.d/e.txt"):
        file = docs / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return docs


def names(listing: Listing) -> list[str]:
    return [file_name(source) for source in listing.files]


def test_folder_is_listed_whole_without_hidden_names(folder: Path) -> None:
    listing = list_sources([folder])
    assert names(listing) == ["a.txt", "b.txt"]
    assert listing.complete_folders == (source_of(folder),)
    assert listing.errors == ()


def test_file_that_is_given_is_listed_even_if_hidden(folder: Path) -> None:
    listing = list_sources([folder / ".hidden.txt"])
    assert names(listing) == [".hidden.txt"]
    assert listing.complete_folders == ()


def test_file_given_twice_is_listed_once(folder: Path) -> None:
    listing = list_sources([folder, folder / "a.txt", folder / "sub" / ".." / "a.txt"])
    assert names(listing) == ["a.txt", "b.txt"]


def test_linked_folder_is_not_entered(folder: Path) -> None:
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    listing = list_sources([folder])
    assert names(listing) == ["a.txt", "b.txt"]
    assert listing.errors == ()


@pytest.mark.parametrize("kind", ["dangling link", "link to itself", "pipe"])
def test_what_is_no_file_is_reported_and_the_folder_is_not_whole(kind: str, folder: Path) -> None:
    odd = folder / "sub" / "odd.txt"
    if kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to(odd if kind == "link to itself" else folder / "nowhere")
    listing = list_sources([folder])
    assert names(listing) == ["a.txt", "b.txt"]
    assert [(error.stage, error.document) for error in listing.errors] == [("list", odd.as_uri())]
    assert listing.complete_folders == ()


def test_pipe_that_is_given_is_an_input_error(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="pipe: neither a file nor a folder"):
        list_sources([pipe])


def test_missing_path_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent: no such file or folder"):
        list_sources([tmp_path / "absent"])


def test_source_keeps_names_in_any_script_apart(tmp_path: Path) -> None:
    file = tmp_path / "Größe #1 100%.txt"
    file.touch()
    assert file_name(source_of(file)) == "Größe #1 100%.txt"


def deny_listing(monkeypatch: pytest.MonkeyPatch, denied: Path) -> None:
    """Makes one folder unreadable; permissions would not stop the superuser."""
    scandir = os.scandir

    def guarded(path: str) -> object:
        if Path(path) == denied:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)


def test_unreadable_folder_is_reported_and_nothing_below_is_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny_listing(monkeypatch, folder / "sub")
    listing = list_sources([folder])
    [error] = listing.errors
    assert (error.stage, error.document) == ("list", source_of(folder / "sub"))
    assert error.cause == "Permission denied"
    assert names(listing) == ["a.txt"]
    assert listing.complete_folders == ()


def test_hashes_leave_out_what_cannot_be_read(folder: Path) -> None:
    files = list_sources([folder]).files
    source = source_of(folder / "a.txt")
    assert hash_files({source: files[source], "absent": folder / "absent"}) == {
        source: hashlib.sha256(b"a.txt").hexdigest()
    }
