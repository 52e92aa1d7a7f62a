"""Comparing a store with the manifest of what it should hold. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from retrieval.stores.base import PointFact

Points = Mapping[UUID, PointFact]


@dataclass(frozen=True, slots=True)
class Verification:
    """The ids of points that are not as the manifest has them; each is in one list.

    - `missing`: in the manifest, not in the store.
    - `orphan`: in the store, of a document that is not in the manifest.
    - `stale`: of another generation or text than in the manifest, or left of an earlier generation.
    - `duplicate`: beside the point that the manifest has for the same text of the same document.
    """

    missing: tuple[UUID, ...] = ()
    orphan: tuple[UUID, ...] = ()
    stale: tuple[UUID, ...] = ()
    duplicate: tuple[UUID, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the store holds what the manifest says, no more and no less."""
        return not (self.missing or self.orphan or self.stale or self.duplicate)


@dataclass(frozen=True, slots=True)
class Repair:
    """What makes the store exact again.

    Write `rewrite` anew, from the ledger or the source; delete `delete_documents` whole, and the
    points `delete_points` of documents that stay.
    """

    rewrite: tuple[UUID, ...]
    delete_documents: tuple[UUID, ...]
    delete_points: tuple[UUID, ...]


def verify(manifest: Points, stored: Points) -> Verification:
    """What differs between the manifest's points and the store's, in the order of their ids."""
    documents = {fact.document_id for fact in manifest.values()}
    held = {_text(fact) for id_, fact in manifest.items() if id_ in stored}
    extra = {id_: fact for id_, fact in sorted(stored.items()) if id_ not in manifest}
    orphan = tuple(id_ for id_, fact in extra.items() if fact.document_id not in documents)
    duplicate = tuple(id_ for id_, fact in extra.items() if _text(fact) in held)
    taken = {*orphan, *duplicate}
    left = (id_ for id_ in extra if id_ not in taken)
    changed = (id_ for id_, fact in manifest.items() if stored.get(id_, fact) != fact)
    return Verification(
        missing=tuple(sorted(manifest.keys() - stored.keys())),
        orphan=orphan,
        stale=tuple(sorted([*left, *changed])),
        duplicate=duplicate,
    )


def repair(manifest: Points, stored: Points) -> Repair:
    """What to do so that `verify` finds nothing."""
    found = verify(manifest, stored)
    wrong = (*found.missing, *(id_ for id_ in found.stale if id_ in manifest))
    surplus = (*found.duplicate, *(id_ for id_ in found.stale if id_ not in manifest))
    return Repair(
        rewrite=tuple(sorted({manifest[id_].document_id for id_ in wrong})),
        delete_documents=tuple(sorted({stored[id_].document_id for id_ in found.orphan})),
        delete_points=tuple(sorted(surplus)),
    )


def _text(fact: PointFact) -> tuple[UUID, str]:
    return fact.document_id, fact.text_sha256
