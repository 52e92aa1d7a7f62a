from dataclasses import replace
from uuid import UUID

import pytest

from retrieval.stores.base import PointFact
from retrieval.stores.verify import Repair, Verification, repair, verify

A, B, GONE = (UUID(int=n) for n in (1, 2, 3))
ONE, TWO, THREE = (UUID(int=n) for n in (11, 12, 13))
MANIFEST = {ONE: PointFact(A, 2, "x"), TWO: PointFact(A, 2, "y"), THREE: PointFact(B, 1, "z")}
EXTRA = UUID(int=99)


def test_a_store_as_in_the_manifest_is_exact():
    """Behaviour 24."""
    assert verify(MANIFEST, dict(MANIFEST)) == Verification()
    assert verify(MANIFEST, dict(MANIFEST)).exact
    assert repair(MANIFEST, dict(MANIFEST)) == Repair((), (), ())


@pytest.mark.parametrize(
    ("change", "found", "mended"),
    [
        ({TWO: None}, Verification(missing=(TWO,)), Repair((A,), (), ())),
        (
            {EXTRA: PointFact(GONE, 1, "x")},
            Verification(orphan=(EXTRA,)),
            Repair((), (GONE,), ()),
        ),
        (
            {TWO: replace(MANIFEST[TWO], generation=1)},
            Verification(stale=(TWO,)),
            Repair((A,), (), ()),
        ),
        (
            {TWO: replace(MANIFEST[TWO], text_sha256="?")},
            Verification(stale=(TWO,)),
            Repair((A,), (), ()),
        ),
        ({EXTRA: PointFact(A, 1, "old")}, Verification(stale=(EXTRA,)), Repair((), (), (EXTRA,))),
        ({EXTRA: PointFact(A, 2, "y")}, Verification(duplicate=(EXTRA,)), Repair((), (), (EXTRA,))),
        (
            {EXTRA: PointFact(A, 1, "y"), TWO: None},
            Verification(missing=(TWO,), stale=(EXTRA,)),
            Repair((A,), (), (EXTRA,)),
        ),
    ],
    ids=["missing", "orphan", "generation", "text", "left over", "duplicate", "under another id"],
)
def test_every_kind_of_difference_is_found_and_mended(change, found, mended):
    """Behaviour 24."""
    stored = {id_: fact for id_, fact in (MANIFEST | change).items() if fact}
    assert verify(MANIFEST, stored) == found
    assert not found.exact
    assert repair(MANIFEST, stored) == mended


def test_the_same_text_in_another_document_is_no_duplicate():
    manifest = MANIFEST | {EXTRA: PointFact(B, 1, "x")}
    assert verify(manifest, dict(manifest)).exact
