"""One file from its bytes to its chunks."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ingest.identity import document_id
from ingest.options import ParserOptions, ParserSpec
from ingest.parse import Parser, read_file
from ingest.parsed import ParseRequest
from ragplane.core.errors import StageError


@pytest.fixture(scope="module")
def parser(tokenizer_file: Path) -> Parser:
    return Parser(ParserSpec(ParserOptions(tokenizer_file, limit_tokens=40), Path("home")))


def request_for(path: Path) -> ParseRequest:
    source = path.as_uri()
    id_ = document_id("acme", "manuals", source)
    return ParseRequest(path, source, "acme", "manuals", id_, generation=3)


def test_document_says_what_was_read(parser: Parser, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("# Set up\n\nOpen the box.\n")
    result = parser.parse(request_for(file))
    document = result.document
    assert document.id == document_id("acme", "manuals", file.as_uri())
    assert document.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (document.title, document.mime, document.generation) == ("Set up", "text/markdown", 3)
    [page], [chunk] = result.pages, result.chunks
    assert chunk.text == page.text == "Set up\nOpen the box."
    assert chunk.document_id == document.id


def test_file_without_text_is_a_document_without_chunks(parser: Parser, tmp_path: Path) -> None:
    file = tmp_path / "blank.txt"
    file.write_text(" \n")
    result = parser.parse(request_for(file))
    assert [page.route for page in result.pages] == ["blank"]
    assert result.chunks == ()


@pytest.mark.parametrize(
    ("name", "cause"), [("absent.txt", "No such file or directory"), ("", "Is a directory")]
)
def test_file_that_cannot_be_read_gives_the_systems_reason(
    name: str, cause: str, tmp_path: Path
) -> None:
    with pytest.raises(StageError, match=f"parse: {cause}") as caught:
        read_file(tmp_path / name)
    assert isinstance(caught.value.__cause__, OSError)


def test_empty_file_is_refused(parser: Parser, tmp_path: Path) -> None:
    file = tmp_path / "empty.pdf"
    file.touch()
    with pytest.raises(StageError, match="parse: the file is empty"):
        parser.parse(request_for(file))


def test_notes_on_the_whole_document_stand_at_its_first_page(
    parser: Parser, tmp_path: Path
) -> None:
    """Behaviours 10 and 14."""
    file = tmp_path / "hidden.html"
    file.write_text("<html><body><p>Seen.</p><p hidden>Unseen words.</p></body></html>")
    [page] = parser.parse(request_for(file)).pages
    assert page.text == "Seen."
    [note] = page.notes
    assert (note.kind, note.text) == ("hidden", "Unseen words.")
