"""EPUB files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ingest.parsed import ParsedDocument
from ragplane.core.errors import StageError
from tests.unit.ingest.readers.archives import packed

Read = Callable[..., ParsedDocument]

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
)
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></metadata>
<manifest>
<item id="b" href="text/b%20two.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="text/a.xhtml" media-type="application/xhtml+xml"/>
<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="p" href="cover.png" media-type="image/png"/>
</manifest>
<spine><itemref idref="p"/><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/>
<itemref idref="none"/></spine></package>"""
PARTS = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "OEBPS/book.opf": PACKAGE.format(title="The Lamp"),
    "OEBPS/text/a.xhtml": "<html><body><h1>One</h1><p>First.</p></body></html>",
    "OEBPS/text/b two.xhtml": "<html><body><h1>Two</h1><p>Second.</p></body></html>",
    "OEBPS/nav.xhtml": "<html><body><p>Contents</p></body></html>",
}


def test_documents_of_the_spine_are_pages_in_its_order(read: Read) -> None:
    """Behaviour 9."""
    document = read(packed(PARTS), "book.zip")
    assert [(page.number, page.text) for page in document.pages] == [
        (1, "One\nFirst."),
        (2, "Two\nSecond."),
    ]
    assert [block.kind for block in document.pages[0].blocks] == ["heading", "paragraph"]
    assert (document.title, document.mime) == ("The Lamp", "application/epub+zip")


def test_title_is_the_books_then_the_first_heading(read: Read) -> None:
    untitled = PARTS | {"OEBPS/book.opf": PACKAGE.format(title=" ")}
    assert read(packed(untitled)).title == "One"


@pytest.mark.parametrize("content", [None, "", "  "], ids=["missing", "empty", "white space"])
def test_document_that_cannot_be_read_costs_its_page_only(content: str | None, read: Read) -> None:
    changed = PARTS | {"OEBPS/text/a.xhtml": content}
    kept = {name: part for name, part in changed.items() if part is not None}
    first, second = read(packed(kept)).pages
    assert first.error is not None
    assert "a.xhtml is missing or empty" in str(first.error)
    assert (first.error.page, first.blocks) == (1, ())
    assert (second.error, second.text) == (None, "Two\nSecond.")


def test_copy_protected_book_is_refused_by_name(read: Read) -> None:
    """Behaviour 10."""
    encryption = '<encryption><CipherReference URI="OEBPS/text/{}"/></encryption>'
    fonts = PARTS | {"META-INF/encryption.xml": encryption.format("font.otf")}
    assert len(read(packed(fonts)).pages) == 2
    with pytest.raises(StageError, match="parse: encrypted EPUB"):
        read(packed(PARTS | {"META-INF/encryption.xml": encryption.format("b%20two.xhtml")}))


@pytest.mark.parametrize(
    "change",
    [
        {"META-INF/container.xml": "<a/>"},
        {"META-INF/container.xml": "<a"},
        {"OEBPS/book.opf": "<package/>"},
        {"OEBPS/book.opf": "<package"},
    ],
    ids=str,
)
def test_broken_file_is_refused_by_name(change: dict[str, str], read: Read) -> None:
    """Behaviour 10."""
    with pytest.raises(StageError, match="parse: not a readable EPUB"):
        read(packed(PARTS | change))


def test_missing_package_is_refused_by_name(read: Read) -> None:
    with pytest.raises(StageError, match="parse: not a readable EPUB"):
        read(packed({"mimetype": "application/epub+zip"}))
