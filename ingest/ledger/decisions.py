"""What a sync changes and what a failure leads to: pure functions."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from ingest.identity import document_id
from ingest.ledger.records import (
    DocumentRow,
    DocumentStatus,
    SourceFile,
    SourceListing,
    SyncReport,
)
from retrieval.stores.base import CorpusKey

MAX_ATTEMPTS = 3
_UNFINISHED = ("pending", "claimed", "parsed")
# A file system counts time in steps, and a file may change twice within one (as git's index says).
_TRUSTED_AGE_NS = 2_000_000_000

Kind = Literal["added", "changed", "stale", "moved", "unchanged"]


@dataclass(frozen=True, slots=True)
class Update:
    """A known document, its file now, and the generation it will have.

    `requeue` if it has to be read again; `sha256` as far as it is known.
    """

    document: DocumentRow
    file: SourceFile
    kind: Kind
    generation: int
    requeue: bool

    @property
    def sha256(self) -> str | None:
        """The file's own, else that of the document if it is the same."""
        kept = self.document.sha256 if self.kind in ("unchanged", "stale", "moved") else None
        return self.file.sha256 or kept


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What a sync writes: new files, updates, documents that are gone."""

    added: tuple[SourceFile, ...]
    updates: tuple[Update, ...]
    gone: tuple[DocumentRow, ...]

    def report(self, listed: int) -> SyncReport:
        """The plan in numbers, given how many files were listed."""
        kinds = [update.kind for update in self.updates]
        added, changed = len(self.added) + kinds.count("added"), kinds.count("changed")
        stale, moved = kinds.count("stale"), kinds.count("moved")
        unchanged = listed - added - changed - stale - moved
        return SyncReport(added, changed, stale, moved, unchanged, len(self.gone))


def plan_sync(
    listing: SourceListing, known: Mapping[str, DocumentRow], parser_hash: str
) -> SyncPlan:
    """Compare files with the documents that are `known` by their source.

    `known` may leave out documents that did not change. A file is moved if an equal one (sha256
    and size) is gone from a folder that was listed whole; of several, the first by source.
    """
    listed = {file.source: file for file in listing.files}
    gone = _gone(listing, known)
    new = {source: file for source, file in listed.items() if source not in known}
    moves = _pair_moves(new.values(), gone)
    updates = [
        _compare(row, listed[source], parser_hash)
        for source, row in known.items()
        if source in listed
    ]
    updates += [_move(row, new.pop(source), parser_hash) for source, row in moves.items()]
    left = {row.id for row in moves.values()}
    return SyncPlan(
        added=tuple(new.values()),
        updates=tuple(updates),
        gone=tuple(row for row in gone if row.id not in left),
    )


def unhashed(listing: SourceListing, known: Mapping[str, DocumentRow]) -> set[str]:
    """Sources whose content must be read to make the plan.

    Reading an object fetches it, so only one that may have moved is: a changed one is parsed
    anyway. `known` as in `plan_sync`.
    """
    sizes = {row.size_bytes for row in _gone(listing, known) if row.sha256}
    return {
        file.source
        for file in listing.files
        if wants_hash(known.get(file.source), file)
        and (file.version is None or (file.source not in known and file.size_bytes in sizes))
    }


def _gone(listing: SourceListing, known: Mapping[str, DocumentRow]) -> list[DocumentRow]:
    listed = {file.source for file in listing.files}
    return [
        row
        for source, row in sorted(known.items())
        if source not in listed
        and row.status != "tombstone"
        and is_below(source, listing.complete_folders)
    ]


def _compare(document: DocumentRow, file: SourceFile, parser_hash: str) -> Update:
    following = document.generation + 1
    if document.status == "tombstone":
        return Update(document, file, "added", following, requeue=True)
    if is_changed(document, file):
        return Update(document, file, "changed", following, requeue=True)
    if document.parser_hash != parser_hash:
        return Update(document, file, "stale", following, requeue=True)
    return Update(document, file, "unchanged", document.generation, requeue=False)


def _move(document: DocumentRow, file: SourceFile, parser_hash: str) -> Update:
    stale = document.parser_hash != parser_hash
    requeue = stale or document.status in _UNFINISHED
    return Update(document, file, "moved", document.generation + stale, requeue)


def _pair_moves(new: Iterable[SourceFile], gone: Iterable[DocumentRow]) -> dict[str, DocumentRow]:
    """For each new file that equals a document that is gone: that document."""
    places: defaultdict[tuple[str, int], deque[DocumentRow]] = defaultdict(deque)
    for row in gone:
        if row.sha256:
            places[row.sha256, row.size_bytes].append(row)
    moves: dict[str, DocumentRow] = {}
    for file in new:
        if file.sha256 and (equal := places.get((file.sha256, file.size_bytes))):
            moves[file.source] = equal.popleft()
    return moves


def is_changed(document: DocumentRow, file: SourceFile) -> bool:
    """Whether the content is another: by hash if both are known, else as `is_same_stat`."""
    if file.sha256 and document.sha256:
        return file.sha256 != document.sha256
    return not is_same_stat(document, file)


def wants_hash(document: DocumentRow | None, file: SourceFile) -> bool:
    """Whether the content of a listed file must be read to say what became of the document."""
    return file.sha256 is None and (document is None or not is_same_stat(document, file))


def is_same_stat(document: DocumentRow, file: SourceFile) -> bool:
    """Whether size and time (of an object: its version) say that nothing changed.

    A time that is not trusted says nothing.
    """
    if file.version is not None:
        known = document.version == file.version
    else:
        known = document.mtime_ns is not None and document.mtime_ns == file.mtime_ns
    return known and document.size_bytes == file.size_bytes


def trusted_mtime(mtime_ns: int, now_ns: int) -> int | None:
    """The time of a file's last change, unless it is so recent that another could share it."""
    return mtime_ns if mtime_ns <= now_ns - _TRUSTED_AGE_NS else None


def is_below(source: str, folders: Iterable[str]) -> bool:
    """Whether the source lies in one of the folders, however deep."""
    return any(source.startswith(f"{folder.removesuffix('/')}/") for folder in folders)


async def fresh_ids(
    key: CorpusKey,
    sources: Iterable[str],
    taken: Callable[[Collection[UUID]], Awaitable[Collection[UUID]]],
) -> dict[str, UUID]:
    """An id for each new source, given a way to ask which ids are taken.

    A document that moved keeps the id that its first source gave it, so a later file at that
    place gets the next free one. The fragment meets no other source: a URI escapes its "#".
    """
    ids: dict[str, UUID] = {}
    waiting, place = list(sources), 0
    while waiting:
        suffix = f"#{place}" if place else ""
        wanted = {document_id(key.tenant, key.corpus, name + suffix): name for name in waiting}
        used = await taken(wanted)
        ids |= {source: id_ for id_, source in wanted.items() if id_ not in used}
        waiting, place = [wanted[id_] for id_ in used], place + 1
    return ids


def after_release(status: DocumentStatus) -> DocumentStatus:
    """What a document becomes that is given back: what was reached stays."""
    return "pending" if status == "claimed" else status


def storable(text: str) -> str:
    """The text without what PostgreSQL has no form for: NUL and lone surrogates."""
    return text.encode("utf-8", errors="replace").decode("utf-8").replace("\x00", "")
