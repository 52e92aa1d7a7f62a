"""What a run is told of an object store."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from ingest.objects.address import Address
from ingest.objects.listing import hash_objects
from ingest.objects.store import ObjectStore
from ingest.sources import Listing, list_sources, source_of
from ragplane.core.errors import ConfigError, InputError, StageError
from tests.integration.ingest.ledger_kit import sha
from tests.integration.ingest.s3_server import PAGE_KEYS, Bucket

ODD_KEYS = [
    "a b",
    "a+b",
    "100%",
    "a%20b",
    "a#b",
    "a?b=c&d",
    "grüße/日本.md",
    "e\u0301",
    "\u00e9",
    "/first",
    "a//b",
    "a'\"<>&",
    "a\\b|c~d",
    "x" * 1000,
]


def keys(listing: Listing) -> list[str]:
    return [Address.parse(source).key for source in listing.objects]


def test_a_folder_is_listed_over_many_pages(bucket: Bucket) -> None:
    """Behaviour 22."""
    wanted = [f"docs/{number}.md" for number in range(3 * PAGE_KEYS + 1)]
    bucket.put(**dict.fromkeys([*wanted, "docs", "docs-old/a.md", "other.md"], "text"))
    bucket.server.requests()
    listing = list_sources([bucket.uri("docs/")])
    assert sorted(keys(listing)) == sorted(wanted)
    assert listing.complete_folders == (bucket.uri("docs/"),)
    assert (listing.errors, listing.files) == ((), {})
    assert {facts.size_bytes for facts in listing.objects.values()} == {4}
    assert [method for method, _ in bucket.server.requests()] == 4 * ["GET"]


def test_odd_keys_come_back(bucket: Bucket) -> None:
    for key in ODD_KEYS:
        bucket.put_key(key, key)
    listing = list_sources([bucket.uri()])
    assert sorted(keys(listing)) == sorted(ODD_KEYS)
    assert hash_objects(listing.objects.keys()) == {
        bucket_uri: sha(Address.parse(bucket_uri).key) for bucket_uri in listing.objects
    }
    for source in listing.objects:
        assert list(list_sources([source]).objects) == [source]


def test_hidden_keys_and_markers_of_folders_are_left_out(bucket: Bucket) -> None:
    bucket.put_key("docs/", "")
    bucket.put_key("docs/sub/", "")
    bucket.put(**{"docs/a": "", "docs/.b": "b", "docs/.git/c": "c", ".d": "d"})
    assert keys(list_sources([bucket.uri()])) == ["docs/a"]
    assert keys(list_sources([bucket.uri(".d")])) == [".d"]


@pytest.mark.parametrize("typed", ["docs", "docs/"])
def test_a_folder_is_named_with_or_without_a_slash(bucket: Bucket, typed: str) -> None:
    bucket.put(**{"docs/a": "a", "docsx": "b"})
    listing = list_sources([bucket.uri(typed)])
    assert keys(listing) == ["docs/a"]
    assert listing.complete_folders == (bucket.uri("docs/"),)


def test_an_object_is_named_before_a_folder(bucket: Bucket) -> None:
    bucket.put(**{"docs": "a", "docs/b": "b"})
    listing = list_sources([bucket.uri("docs")])
    assert keys(listing) == ["docs"]
    assert listing.complete_folders == ()
    listed = list_sources([bucket.uri()]).objects[bucket.uri("docs")]
    assert listing.objects[bucket.uri("docs")] == listed


def test_an_empty_folder_is_whole_and_a_wrong_name_is_an_input_error(bucket: Bucket) -> None:
    for empty in (bucket.uri(), bucket.uri("docs/")):
        listing = list_sources([empty])
        assert (listing.objects, listing.complete_folders) == ({}, (empty,))
    with pytest.raises(InputError, match="docs: no such object or folder"):
        list_sources([bucket.uri("docs")])


def test_files_and_objects_are_listed_together(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    bucket.put(b="b")
    listing = list_sources([str(tmp_path), bucket.uri(), bucket.uri("b")])
    assert list(listing.files) == [source_of(tmp_path / "a.md")]
    assert list(listing.objects) == [bucket.uri("b")]
    assert listing.complete_folders == (source_of(tmp_path), bucket.uri())


@pytest.mark.parametrize("wrong", ["s3://no-such-bucket", "s3://no-such-bucket/a", "s3://a b/"])
@pytest.mark.usefixtures("bucket")
def test_a_wrong_bucket_is_an_input_error(wrong: str) -> None:
    with pytest.raises(InputError, match=r"^s3://(no-such-bucket|a b)/"):
        list_sources([wrong])


def test_a_listing_that_breaks_off_makes_no_folder_whole(bucket: Bucket) -> None:
    """Behaviour 22."""
    bucket.put(**{f"docs/{number}": "a" for number in range(PAGE_KEYS + 1)})
    bucket.server.refuse("GET", "continuation-token")
    listing = list_sources([bucket.uri("docs/")])
    [error] = listing.errors
    assert (error.stage, error.document) == ("list", bucket.uri("docs/"))
    assert error.cause.startswith("Refused")
    assert len(listing.objects) == PAGE_KEYS
    assert listing.complete_folders == ()


def test_a_listing_that_is_forbidden_does_not_hide_the_others(bucket: Bucket) -> None:
    bucket.put(a="a")
    bucket.server.refuse("GET", "prefix=docs")
    listing = list_sources([bucket.uri("docs"), bucket.uri()])
    assert [error.stage for error in listing.errors] == ["list"]
    assert keys(listing) == ["a"]
    assert listing.complete_folders == (bucket.uri(),)


@pytest.mark.usefixtures("bucket")
def test_a_store_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    listing = list_sources(["s3://docs", "s3://docs/a"])
    assert [error.stage for error in listing.errors] == ["list", "list"]
    assert (
        'EndpointConnectionError: Could not connect to the endpoint URL: "http://127.0.0.1:9/'
        in (listing.errors[0].cause)
    )
    assert listing.complete_folders == ()


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (200, "", "the answer is no listing"),
        (200, "<html><p>Welcome!</p></html>", "the answer is no listing"),
        (200, "Welcome!", "500: Internal Server Error"),  # so the library
        (404, "<html><p>Nothing", "404: Not Found"),
        (
            200,
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "the listing breaks off, and does not say how to go on",
        ),
        (503, "<html/>", "HTTP 503"),
    ],
)
def test_an_endpoint_that_does_not_speak_s3_is_no_empty_folder(
    bucket: Bucket, status: int, body: str, cause: str
) -> None:
    """Behaviour 22: a proxy that greets must not have the corpus deleted."""
    bucket.server.refuse("GET", "list-type", status, body)
    listing = list_sources([bucket.uri()])
    assert [(error.stage, error.cause) for error in listing.errors] == [("list", cause)]
    assert listing.complete_folders == ()


def test_an_endpoint_may_have_a_name(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket is part of the path there, not of the host's name."""
    bucket.put(a="a")
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.server.url.replace("127.0.0.1", "localhost"))
    assert keys(list_sources([bucket.uri()])) == ["a"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_SECRET_ACCESS_KEY", None),
        ("AWS_ENDPOINT_URL", "nowhere"),
        ("AWS_PROFILE", "nobody"),
    ],
)
def test_a_wrong_environment_is_a_config_error(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=r"(?i)s3://.*(credentials|endpoint|profile)"):
        list_sources([bucket.uri()])


def test_without_boto3_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigError, match=r"needs boto3: .*ragplane\[s3\]"):
        list_sources(["s3://bucket"])


def test_objects_that_cannot_be_fetched_have_no_hash(bucket: Bucket) -> None:
    bucket.put(a="a", b="b")
    bucket.server.refuse("GET", "/a")
    assert hash_objects([bucket.uri(key) for key in "abc"]) == {bucket.uri("b"): sha("b")}


@pytest.mark.parametrize(("key", "cause"), [("gone", "NoSuchKey: "), ("forbidden", "Refused")])
def test_a_fetch_that_fails_says_why(bucket: Bucket, key: str, cause: str) -> None:
    bucket.put(forbidden="text")
    bucket.server.refuse("GET", "forbidden")
    with closing(ObjectStore()) as store, pytest.raises(StageError) as raised:
        list(store.read(Address(bucket.name, key)))
    assert raised.value.stage == "parse"
    assert raised.value.cause.startswith(cause)
