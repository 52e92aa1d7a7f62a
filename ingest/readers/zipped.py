"""ZIP containers (Office Open XML, OpenDocument, EPUB) that may be bombs, and their XML."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lxml import etree

from ingest.readers.base import ReadLimits
from ragplane.core.errors import StageError, describe

_PIECE_BYTES = 1 << 16
_NO_SIZE = 1 << 62
_SMALL_FILE_BYTES = 1 << 16  # a ratio says little of a file smaller than this
_XML_NAMES = (".xml", ".rels", ".opf")
_ENTITY = b"<!ENTITY"
# NotImplementedError: zipfile's, for a compression that it does not know.
_BROKEN_ZIP = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, OSError, ValueError
)  # fmt: skip
# What the libraries raise on XML that is not what they expect.
_MALFORMED = (*_BROKEN_ZIP, AttributeError, LookupError, SyntaxError, TypeError)


def open_zip(content: bytes, what: str, limits: ReadLimits) -> zipfile.ZipFile:
    """Open a container after unzipping all of it once, in pieces, to count what it really holds.

    A declared size is not believed: a library that reads a member whole would unzip all of it.
    Raises StageError `parse` for one that is broken, encrypted, inflates past `limits`, or whose
    XML declares entities (an XML bomb; office formats have no use for them).
    """
    limit = min(limits.unzipped_bytes, limits.unzip_ratio * max(len(content), _SMALL_FILE_BYTES))
    unzipped = 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                if entry.flag_bits & 1:
                    raise StageError("parse", f"encrypted {what} (the ZIP has a password)")
                entry.file_size = _NO_SIZE  # or the count would stop at the declared size
                unzipped = _count(archive, entry, unzipped, limit, what)
        return zipfile.ZipFile(io.BytesIO(content))
    except _BROKEN_ZIP as error:
        raise StageError("parse", f"not a readable {what} ({describe(error)})") from error


def _count(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, unzipped: int, limit: int, what: str
) -> int:
    is_xml = entry.filename.lower().endswith(_XML_NAMES)
    tail = b""
    with archive.open(entry) as stream:
        while piece := stream.read(_PIECE_BYTES):
            unzipped += len(piece)
            if unzipped > limit:
                raise StageError("parse", f"the {what} unzips to over {limit:,} bytes, refused")
            if is_xml and _ENTITY in tail + piece:
                raise StageError("parse", f"the {what} declares XML entities, refused")
            tail = piece[-len(_ENTITY) :]
    return unzipped


@contextmanager
def malformed_as(what: str, *errors: type[Exception]) -> Iterator[None]:
    """Turns what a library raises on a malformed file, its own `errors` too, into StageError."""
    caught: tuple[type[Exception], ...] = (*_MALFORMED, *errors)
    try:
        yield
    except RecursionError as error:
        raise StageError("parse", f"the {what} is nested too deeply") from error
    except caught as error:
        raise StageError("parse", f"not a readable {what} ({describe(error)})") from error


def xml_root(content: bytes) -> Any:
    """The root element, parsed without entities, network or DTD. Raises SyntaxError."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True,
        remove_pis=True,
    )  # fmt: skip
    return etree.fromstring(content, parser)


def local_name(element: Any) -> str:
    """The element's name without its namespace; empty for a comment or an entity."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Any, name: str) -> str | None:
    """An attribute by its name without namespace."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return None
