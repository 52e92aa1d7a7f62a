"""PDF files that are encrypted, damaged or hostile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymupdf
import pytest

from ingest.parsed import ParsedDocument
from ragplane.core.errors import StageError

Text = Callable[..., Callable[[Any], None]]
MakePdf = Callable[..., bytes]
Read = Callable[..., ParsedDocument]

AES = pymupdf.PDF_ENCRYPT_AES_256


def content_of(document: ParsedDocument) -> str:
    return "\n".join(page.text for page in document.pages)


def test_file_that_needs_a_password_is_encrypted(make_pdf: MakePdf, read: Read, text: Text) -> None:
    """Behaviour 10."""
    content = make_pdf(text("Secret."), encryption=AES, user_pw="user", owner_pw="owner")
    with pytest.raises(StageError, match="parse: encrypted"):
        read(content)
    with pytest.raises(StageError, match="parse: encrypted"):
        read(content, passwords=("wrong",))


@pytest.mark.parametrize("password", ["user", "owner"])
def test_password_that_fits_opens_the_file(
    password: str, make_pdf: MakePdf, read: Read, text: Text
) -> None:
    """Behaviour 10."""
    content = make_pdf(text("Secret."), encryption=AES, user_pw="user", owner_pw="owner")
    assert content_of(read(content, passwords=("wrong", password))) == "Secret."


def test_file_with_an_owner_password_only_is_read(
    make_pdf: MakePdf, read: Read, text: Text
) -> None:
    content = make_pdf(text("Open to all."), encryption=AES, owner_pw="owner")
    assert content_of(read(content)) == "Open to all."


def test_broken_cross_references_are_repaired(make_pdf: MakePdf, read: Read, text: Text) -> None:
    """Behaviour 10."""
    content = make_pdf(text("Still here."))
    broken = content[: content.rindex(b"startxref")] + b"startxref\n99999999\n%%EOF"
    document = read(broken)
    assert content_of(document) == "Still here."
    assert [note.kind for note in document.notes] == ["repaired"]
    assert read(content).notes == ()


@pytest.mark.parametrize("kept", [0.02, 0.3, 0.6, 0.9])
def test_truncated_file_is_read_or_refused_by_name(
    kept: float, make_pdf: MakePdf, read: Read, text: Text
) -> None:
    content = make_pdf(*[text(f"Page {number}.") for number in range(5)])
    try:
        document = read(content[: int(kept * len(content))])
    except StageError as error:
        assert error.stage == "parse"
        assert error.cause.startswith(("not a readable PDF", "the PDF has no pages"))
    else:
        assert "Page" in content_of(document)


@pytest.mark.parametrize(
    "content",
    [b"", b"%PDF-1.7\n", b"%PDF-1.7\nno objects at all", b"%PDF-1.4\n" + bytes(range(256)) * 20],
    ids=["no bytes", "header only", "words", "noise"],
)
def test_broken_bytes_are_refused_by_name(content: bytes, read: Read) -> None:
    """Behaviour 10."""
    with pytest.raises(StageError, match=r"parse: (not a readable PDF|the PDF has no pages)"):
        read(content)


def hand_written_pdf(to_unicode: str, title: str) -> bytes:
    """A page that says "Hello A B", whose letters stand for what the map says."""
    stream = "BT /F1 12 Tf 72 700 Td (Hello there A B) Tj ET"
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange "
        f"<00> <FF> endcodespacerange 2 beginbfchar {to_unicode} endbfchar endcmap end end"
    )
    bodies = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R"
        "/Resources<</Font<</F1 5 0 R>>>>>>",
        f"<</Length {len(stream)}>>stream\n{stream}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>",
        f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream",
        f"<</Title {title}>>",
    ]
    content, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n"
    entries = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    return (
        f"{content}xref\n0 8\n0000000000 65535 f \n{entries}"
        f"trailer\n<</Size 8/Root 1 0 R/Info 7 0 R>>\nstartxref\n{len(content)}\n%%EOF"
    ).encode("ascii")


@pytest.mark.parametrize(
    "to_unicode",
    ["<41> <D800> <42> <0000>", "<41> <D800> <42> <DC00>", "<41> <0041DC00> <42> <00000042>"],
)
@pytest.mark.parametrize("title", ["<FEFFDC00>", "<FEFF00410000>", "(a\\000b)", "()"])
def test_text_and_title_can_be_stored_whatever_the_file_says(
    to_unicode: str, title: str, read: Read
) -> None:
    document = read(hand_written_pdf(to_unicode, title), "spare.pdf")
    for stored in (document.title, content_of(document)):
        assert stored.encode("utf-8")
        assert "\x00" not in stored
    assert content_of(document).startswith("Hello there")
