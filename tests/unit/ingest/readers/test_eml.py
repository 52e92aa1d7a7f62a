"""Mails and their attachments."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import docx
import pytest

from ingest.parsed import ParsedDocument
from ragplane.core.errors import StageError

Read = Callable[..., ParsedDocument]


def mail(subject: str = "Lamps", **parts: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Ada <ada@example.com>"
    message["To"] = "bob@example.com"
    message["Date"] = "Fri, 01 Mar 2024 09:30:00 +0100"
    message["Subject"] = subject
    message["Message-ID"] = "<1@example.com>"
    message.set_content(parts.get("text", "Hello."))
    if "html" in parts:
        message.add_alternative(parts["html"], subtype="html")
    return message


def attach(
    message: EmailMessage, content: bytes, name: str, kind: str = "a/b", **more: Any
) -> None:
    main, sub = kind.split("/")
    message.add_attachment(content, maintype=main, subtype=sub, filename=name, **more)


def texts(document: ParsedDocument) -> list[list[str]]:
    return [[block.text for block in page.blocks] for page in document.pages]


def test_headers_and_body_are_read(read: Read) -> None:
    """Behaviour 9."""
    document = read(mail("Grüße 日本").as_bytes(), "a.txt")
    assert texts(document) == [
        [
            "Grüße 日本",
            "From: Ada <ada@example.com>\nTo: bob@example.com\n"
            "Date: Fri, 01 Mar 2024 09:30:00 +0100\nSubject: Grüße 日本",
            "Hello.",
        ]
    ]
    assert (document.title, document.mime) == ("Grüße 日本", "message/rfc822")


def test_of_alternatives_the_html_is_read_with_its_structure(read: Read) -> None:
    document = read(mail(text="plain", html="<ul><li>rich</ul><p hidden>secret</p>").as_bytes())
    assert texts(document)[0][2:] == ["- rich"]
    assert [(note.kind, note.text) for note in document.notes] == [("hidden", "secret")]


@pytest.mark.parametrize("html", ["", "<html><img src=a></html>"])
def test_plain_text_is_read_where_the_html_is_empty(html: str, read: Read) -> None:
    assert texts(read(mail(text="plain", html=html).as_bytes()))[0][2:] == ["plain"]


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-8", "utf-16", "no-such-charset"])
def test_body_is_decoded_by_its_charset_or_by_detection(charset: str, read: Read) -> None:
    known = charset if charset != "no-such-charset" else "utf-8"
    head = f"Subject: a\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset={charset}\r\n"
    body = io.BytesIO()
    body.write(f"{head}Content-Transfer-Encoding: base64\r\n\r\n".encode())
    body.write(base64.b64encode("Größe der Tür".encode(known)))
    assert texts(read(body.getvalue()))[0][-1] == "Größe der Tür"


def test_raw_header_and_whole_mail_in_utf16_are_read(read: Read) -> None:
    text = "Subject: Größe der Tür\nMIME-Version: 1.0\n\nHello."
    for encoding in ("utf-8", "utf-16", "utf-16-le"):
        assert read(text.encode(encoding), "a").title == "Größe der Tür"


@pytest.mark.parametrize("subject", ["=?utf-8?b?!?=", "=?x-none?q?a=F6?=", "=?utf-8?q?=ff?=", ""])
def test_broken_subject_does_not_stop_the_reading(subject: str, read: Read) -> None:
    content = f"Subject: {subject}\nMIME-Version: 1.0\n\nHello.".encode()
    assert texts(read(content))[0][-1] == "Hello."


def test_attachment_is_read_by_its_own_reader_under_its_name(read: Read) -> None:
    """Behaviours 9 and 14."""
    buffer = io.BytesIO()
    letter = docx.Document()
    letter.add_heading("Offer")
    letter.add_paragraph("Ten lamps.")
    letter.save(buffer)
    message = mail()
    attach(message, buffer.getvalue(), "Angebot für Bob.docx")
    attach(message, b"Item,Price\nLamp,12\n", "prices.csv", "application/octet-stream")
    document = read(message.as_bytes())
    assert texts(document)[1:] == [
        ["Angebot für Bob.docx", "Offer", "Ten lamps."],
        ["prices.csv", "| Item | Price |", "| Lamp | 12 |"],
    ]
    assert [page.number for page in document.pages] == [1, 2, 3]
    headings = [b.level for page in document.pages for b in page.blocks if b.kind == "heading"]
    assert headings == [1, 2, 3, 2]
    assert [note.text.split(": ")[0] for note in document.notes] == [
        "Angebot für Bob.docx",
        "prices.csv",
    ]


def test_attachment_that_cannot_be_read_is_listed(read: Read) -> None:
    """Behaviour 14."""
    message = mail()
    attach(message, b"Rar!\x1a\x07\x00", "photos.rar")
    attach(message, b"PK\x03\x04broken", "letter.docx")
    document = read(message.as_bytes())
    assert len(document.pages) == 1
    assert [(note.kind, note.text) for note in document.notes] == [
        ("attachment", "photos.rar: not read (a RAR archive is not a supported type)"),
        ("attachment", "letter.docx: not read (a broken ZIP container (File is not a zip file))"),
    ]


def test_image_within_the_mail_is_listed_and_not_read(read: Read, ocr: Any) -> None:
    message = mail(html="<p>text<img src=cid:logo>")
    attach(message, b"\x89PNG\r\n\x1a\n", "logo.png", "image/png", cid="<logo>")
    document = read(message.as_bytes())
    assert [note.text for note in document.notes] == ["logo.png: an image within the mail"]
    assert ocr.images == []


def test_forwarded_mail_is_read_with_its_attachments(read: Read) -> None:
    inner = mail("Inner")
    attach(inner, b"deep text", "deep.txt")
    outer = mail("Outer")
    outer.add_attachment(inner)
    document = read(outer.as_bytes())
    assert document.title == "Outer"
    assert texts(document)[1][:2] == ["attached mail", "Inner"]
    assert texts(document)[2] == ["deep.txt", "deep text"]


def test_mails_nested_too_deeply_are_listed(read: Read) -> None:
    """Behaviour 10."""
    message = mail("0")
    for level in range(1, 8):
        outer = mail(str(level))
        outer.add_attachment(message)
        message = outer
    document = read(message.as_bytes())
    assert len(document.pages) == 5
    assert any("mails within each other" in note.text for note in document.notes)


def test_mails_of_one_mailbox_are_read_one_after_the_other(read: Read) -> None:
    envelope = b"From ada@example.com Fri Mar  1 09:30:00 2024\n"
    box = b"".join(envelope + mail(subject).as_bytes() + b"\n" for subject in ("One", "Two"))
    document = read(box)
    assert [page[0] for page in texts(document)] == ["One", "Two"]
    assert [page.number for page in document.pages] == [1, 2]


def test_several_text_parts_are_read_in_order(read: Read) -> None:
    parts = "".join(f"--x\nContent-Type: text/plain\n\npart {index}\n\n" for index in range(3))
    head = 'Subject: a\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n\n'
    document = read(f"{head}{parts}--x--\n".encode())
    assert texts(document)[0][-3:] == ["part 0", "part 1", "part 2"]


def test_parts_nested_without_end_are_refused_by_name(read: Read) -> None:
    """Behaviour 10."""
    lines = ["Subject: a", "MIME-Version: 1.0"]
    for level in range(2000):
        lines += [f'Content-Type: multipart/mixed; boundary="b{level}"', "", f"--b{level}"]
    with pytest.raises(StageError, match="parse: the mail is nested too deeply"):
        read("\n".join(lines).encode())
