"""How objects are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.ledger.decisions import is_below
from ingest.objects.address import Address, is_address, is_left_out
from ingest.sources import file_name
from ragplane.core.errors import InputError

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(KEYS)
def test_every_key_has_an_address_that_leads_back(key: str) -> None:
    uri = Address("bucket", key).uri
    assert Address.parse(uri) == Address("bucket", key)
    assert uri.isascii()
    assert not set(" #?") & set(uri)


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("s3://bucket", ""),
        ("s3://bucket/", ""),
        ("s3://bucket/a b#1?+.md", "a b#1?+.md"),
        ("s3://bucket/a%20b", "a b"),
        ("s3://bucket/100% sure", "100% sure"),
        ("s3://bucket//a//b", "/a//b"),
    ],
)
def test_an_address_may_be_typed_as_it_is(typed: str, key: str) -> None:
    assert Address.parse(typed) == Address("bucket", key)


@pytest.mark.parametrize("wrong", ["s3://", "s3:///key", "s3://bucket/%ff", "s3://bucket/\udcff"])
def test_what_names_no_object_is_an_input_error(wrong: str) -> None:
    with pytest.raises(InputError, match=r"bucket is named|is no UTF-8"):
        Address.parse(wrong)


def test_only_s3_is_an_object_store() -> None:
    assert is_address("s3://bucket/key")
    assert not any(map(is_address, ["s3:/bucket", "/s3://bucket", "file:///s3", "S3.txt"]))


@pytest.mark.parametrize(
    ("folder", "key", "below"),
    [
        ("", "a", True),
        ("", "/a", True),
        ("a", "a/b", True),
        ("a", "a//b", True),
        ("a", "ab", False),
        ("a//", "a//b", True),
        ("a//", "a/b", False),
        ("/", "/a", True),
        ("/", "a", False),
        ("ü", "ü/b", True),
    ],
)
def test_what_lies_below_a_folder_has_its_address_as_start(
    folder: str, key: str, below: bool
) -> None:
    """Behaviour 22: only what was listed can be gone."""
    address = Address("bucket", folder).as_folder()
    assert is_below(Address("bucket", key).uri, [address.uri]) is below
    assert key.startswith(address.key) is below


@pytest.mark.parametrize(
    ("key", "size_bytes", "left_out"),
    [
        (".a/b.md", 1, False),
        (".a/.b", 1, True),
        (".a/.b/c", 1, True),
        (".a/b/", 0, True),
        (".a/b/", 1, False),
        (".a/b", 0, False),
    ],
)
def test_hidden_keys_and_markers_of_folders_are_left_out(
    key: str, size_bytes: int, left_out: bool
) -> None:
    assert is_left_out(key, size_bytes, ".a/") is left_out


def test_people_see_the_last_part_of_the_key() -> None:
    assert file_name(Address("bucket", "a/Größe #1 100%.md").uri) == "Größe #1 100%.md"
