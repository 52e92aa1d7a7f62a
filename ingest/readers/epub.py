"""EPUB 2 and 3: the documents of the spine in order, each a page, through the HTML reader."""

from __future__ import annotations

import posixpath
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from ingest.encoding import decode_text
from ingest.parsed import ParsedDocument, flowing_page
from ingest.readers.base import ReadContext, title_or_name
from ingest.readers.flowing import storable_blocks
from ingest.readers.html import parse_html
from ingest.readers.zipped import attribute, local_name, malformed_as, open_zip, xml_root
from ragplane.core.errors import StageError
from ragplane.core.schema import Page

_MIME = "application/epub+zip"
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_HTML_TYPES = ("application/xhtml+xml", "text/html")


def read_epub(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read each document of the spine as a page; the table of contents is left out.

    Raises StageError `parse` for a broken, inflated or copy-protected file.
    """
    with malformed_as("EPUB"), open_zip(content, "EPUB", context.limits) as archive:
        package_name = _package_name(archive)
        package = xml_root(archive.read(package_name))
        files = list(_spine(package, posixpath.dirname(package_name)))
        if not files:
            raise ValueError("the spine names no document")
        protected = set(_encrypted_files(archive))
        if protected.intersection(files):
            raise StageError("parse", "encrypted EPUB (copy-protected)")
        pages = tuple(_page(archive, name, number) for number, name in enumerate(files, start=1))
        titles = (part.text or "" for part in package.iter() if local_name(part) == "title")
        title = next(titles, "")
    headings = (block.text for page in pages for block in page.blocks if block.kind == "heading")
    name = title_or_name(title.strip() or next(headings, None), context.name)
    return ParsedDocument(name, _MIME, pages)


def _page(archive: zipfile.ZipFile, name: str, number: int) -> Page:
    """One document of the spine; one that cannot be read is a page with an error."""
    started = time.perf_counter()
    blocks, error = [], None
    try:
        content = archive.read(name) if name in archive.NameToInfo else b""
        if not content.strip():
            raise StageError("parse", f"{name} is missing or empty")
        blocks = storable_blocks(parse_html(decode_text(content)).blocks)
    except StageError as failure:
        error = StageError("parse", failure.cause, page=number)
    page = flowing_page(blocks, time.perf_counter() - started)
    return replace(page, number=number, error=error)


def _package_name(archive: zipfile.ZipFile) -> str:
    root = xml_root(archive.read(_CONTAINER))
    paths = (attribute(part, "full-path") for part in root.iter() if local_name(part) == "rootfile")
    name = next(paths, None)
    if not name:
        raise ValueError("the container names no package")
    return name


def _spine(package: Any, folder: str) -> Iterator[str]:
    """The names of the documents in reading order."""
    items = {attribute(part, "id"): part for part in package.iter() if local_name(part) == "item"}
    for reference in (part for part in package.iter() if local_name(part) == "itemref"):
        item = items.get(attribute(reference, "idref"))
        if item is None or attribute(item, "media-type") not in _HTML_TYPES:
            continue
        if "nav" not in (attribute(item, "properties") or "").split():
            path = unquote(attribute(item, "href") or "")
            yield posixpath.normpath(posixpath.join(folder, path))


def _encrypted_files(archive: zipfile.ZipFile) -> Iterator[str]:
    if _ENCRYPTION in archive.namelist():
        for part in xml_root(archive.read(_ENCRYPTION)).iter():
            if local_name(part) == "CipherReference":
                yield unquote(attribute(part, "URI") or "")
