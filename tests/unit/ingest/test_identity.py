"""Names that never change."""

from __future__ import annotations

from uuid import UUID

import pytest

from ingest.identity import chunk_id, document_id, text_sha256

DOCUMENT = document_id("acme", "manuals", "file:///a.pdf")


def test_ids_are_the_ones_already_stored() -> None:
    # Another value would orphan every chunk that was stored before.
    assert document_id("acme", "manuals", "file:///a.pdf") == UUID(
        "8cfd27cd-ab5e-5e6e-b5c6-15020824d872"
    )
    assert chunk_id("acme", "manuals", DOCUMENT, 3, "ab12") == UUID(
        "54e5e782-57c0-56b7-b96b-8735b695a8bd"
    )


@pytest.mark.parametrize(
    "other",
    [
        ("other", "manuals", "file:///a.pdf"),
        ("acme", "letters", "file:///a.pdf"),
        ("acme", "manuals", "file:///b.pdf"),
        ("acmem", "anuals", "file:///a.pdf"),  # the same characters, parted elsewhere
    ],
)
def test_documents_differ_by_tenant_corpus_and_source(other: tuple[str, str, str]) -> None:
    assert document_id(*other) != DOCUMENT


def test_chunks_differ_by_place_and_content() -> None:
    ids = {
        chunk_id(tenant, corpus, document, ordinal, sha256)
        for tenant in ("acme", "other")
        for corpus in ("manuals", "letters")
        for document in (DOCUMENT, document_id("acme", "manuals", "file:///b.pdf"))
        for ordinal in (1, 11)
        for sha256 in ("1a", "a")
    }
    assert len(ids) == 32


def test_hash_of_a_text_is_over_its_utf8() -> None:
    assert text_sha256("é") == "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"
