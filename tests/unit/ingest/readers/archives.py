"""ZIP files of tests."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

BOMB_XML = (
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">'
    b'<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><a>&b;</a>'
)


def packed(parts: Mapping[str, bytes | str]) -> bytes:
    """A compressed archive of these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def parts_of(content: bytes) -> dict[str, bytes]:
    """The members of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_parts(content: bytes, **changes: bytes | None) -> bytes:
    """The archive with members replaced, added, or left out (None)."""
    changed = parts_of(content) | changes
    return packed({name: part for name, part in changed.items() if part is not None})


def declaring_sizes(content: bytes, size: int) -> bytes:
    """The archive, its directory and its members claiming that each unzips to `size` bytes."""
    changed = bytearray(content)
    for mark, place in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = changed.find(mark)
        while start >= 0:
            struct.pack_into("<I", changed, start + place, size)
            start = changed.find(mark, start + 4)
    return bytes(changed)
