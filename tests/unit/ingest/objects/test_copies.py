"""Files with the content of objects."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.objects import copies
from ingest.objects.address import Address
from ingest.objects.copies import ObjectCopy, copy_name
from ragplane.core.errors import StageError


class Pieces:
    """A store whose objects all come in these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    def read(self, address: Address) -> Iterator[bytes]:
        yield from self._pieces


def fetch(store: Pieces, most_bytes: int = 10, timeout_s: float = 60) -> bytes:
    with ObjectCopy("s3://bucket/a/b%20c.md", most_bytes, timeout_s) as copy:
        path = copy.fetch(store)
        assert path.name == "b c.md"
        content = path.read_bytes()
    assert not path.exists()
    assert not path.parent.exists()
    return content


def test_a_copy_is_gone_after_the_block() -> None:
    assert fetch(Pieces(b"abc", b"def")) == b"abcdef"
    assert fetch(Pieces()) == b""


def test_a_copy_is_gone_after_a_failure() -> None:
    with (
        pytest.raises(StageError, match="spoilt"),
        ObjectCopy("s3://bucket/a", 10, 60) as copy,
    ):
        path = copy.fetch(Pieces(b"a"))
        raise StageError("parse", "spoilt")
    assert not path.parent.exists()


def test_an_object_has_a_largest_size() -> None:
    with pytest.raises(StageError, match="parse: larger than 1 MiB"):
        fetch(Pieces(bytes(1 << 20), b"a"), most_bytes=1 << 20)
    assert len(fetch(Pieces(bytes(1 << 20)), most_bytes=1 << 20)) == 1 << 20


def test_a_fetch_has_an_end() -> None:
    with pytest.raises(StageError, match="parse: was not fetched within 0 s"):
        fetch(Pieces(b"a"), timeout_s=0)


def test_a_fetch_whose_block_was_left_gives_up() -> None:
    copy = ObjectCopy("s3://bucket/a", 10, 60)

    class Slow(Pieces):
        def read(self, address: Address) -> Iterator[bytes]:
            yield b"a"
            copy.__exit__(None, None, None)
            yield b"b"

    with copy, pytest.raises(StageError):
        copy.fetch(Slow())


def test_a_full_disk_costs_the_document(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(copies, "TemporaryDirectory", full)
    with pytest.raises(StageError, match="parse: no copy: No space left on device"):
        fetch(Pieces(b"a"))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("a/b.md", "b.md"),
        ("a/b/", "b"),
        ("..", "object"),
        ("a/.", "object"),
        ("/", "object"),
        ("a\0b", "ab"),
        ("x" * 300 + ".md", "x" * 197 + ".md"),
        ("ü" * 150 + "a", "ü" * 99 + "a"),
    ],
)
def test_a_copy_has_a_name_that_a_file_can_have(key: str, name: str) -> None:
    assert copy_name(key) == name
