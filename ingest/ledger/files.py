"""What is listed as the ledger is told of it: sizes, times, hashes where they are needed."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from ingest.ledger.decisions import trusted_mtime
from ingest.ledger.records import SourceFile, SourceListing
from ingest.objects.listing import hash_objects
from ingest.sources import Listing, hash_files


def stat_files(listing: Listing) -> SourceListing:
    """Sizes and times of the listed files, sizes and ETags of objects.

    A file that cannot be asked any more is listed all the same, so that reading it names the
    cause and it does not count as gone.
    """
    now_ns = time.time_ns()
    files = [_stat(source, path, now_ns) for source, path in listing.files.items()]
    objects = [
        SourceFile(source, facts.size_bytes, None, version=facts.etag)
        for source, facts in listing.objects.items()
    ]
    return SourceListing((*files, *objects), listing.complete_folders)


def add_hashes(stats: SourceListing, listing: Listing, sources: Collection[str]) -> SourceListing:
    """The same with the sha256 of the content of these sources, as far as it can be read."""
    hashes = hash_files(
        {source: listing.files[source] for source in listing.files.keys() & sources}
    )
    hashes |= hash_objects(listing.objects.keys() & sources)
    files = (replace(file, sha256=hashes.get(file.source)) for file in stats.files)
    return replace(stats, files=tuple(files))


def _stat(source: str, path: Path, now_ns: int) -> SourceFile:
    try:
        found = path.stat()
    except OSError:
        return SourceFile(source, 0, None)
    return SourceFile(source, found.st_size, trusted_mtime(found.st_mtime_ns, now_ns))
