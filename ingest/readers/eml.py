"""Mail (RFC 5322, MIME): its headers, its body, then each attachment through its own reader."""

from __future__ import annotations

import email
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from email.message import Message

from ingest.encoding import decode_text, has_wide_characters
from ingest.parsed import ParsedDocument, flowing_page
from ingest.readers.base import ReadContext, title_or_name
from ingest.readers.flowing import storable_blocks
from ingest.readers.html import parse_html
from ingest.readers.mail_headers import decode_words, header, header_lines
from ingest.readers.text import text_blocks
from ingest.sniff import reader_for, sniff
from ragplane.core.errors import StageError
from ragplane.core.schema import Block, Note, Page

_MIME = "message/rfc822"
_MAX_DEPTH = 5  # mails within mails
_PREFERENCE = ("text/html", "text/plain")
_NEXT_MAIL = re.compile(rb"\r?\n\r?\n(?=From [^\r\n]+\r?\n[!-9;-~]+:)")  # in a mailbox file


@dataclass(slots=True)
class _Found:
    """The body of a mail and its attachments in order, each with its name."""

    blocks: list[Block] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    attachments: list[tuple[str, Message]] = field(default_factory=list)


def read_eml(content: bytes, context: ReadContext) -> ParsedDocument:
    """Read a mail: page 1 is its headers and body, each attachment has further pages.

    Of alternatives the HTML is read, or the plain text where that is empty. An attachment that
    cannot be read, an inline image, and a mail nested too deeply are only noted. Several mails in
    one mailbox file are read one after the other. Raises StageError `parse` for broken nesting.
    """
    try:
        return _read(content, context, depth=1)
    except RecursionError as error:
        raise StageError("parse", "the mail is nested too deeply") from error


def _read(content: bytes, context: ReadContext, depth: int) -> ParsedDocument:
    if has_wide_characters(content):
        content = decode_text(content).encode("utf-8")
    parts = _NEXT_MAIL.split(content) if content.startswith(b"From ") else [content]
    mails = [_read_mail(email.message_from_bytes(part), context, depth) for part in parts]
    pages = [page for mail in mails for page in mail.pages]
    numbered = tuple(replace(page, number=number) for number, page in enumerate(pages, start=1))
    notes = tuple(note for mail in mails for note in mail.notes)
    return ParsedDocument(mails[0].title, _MIME, numbered, notes)


def _read_mail(message: Message, context: ReadContext, depth: int) -> ParsedDocument:
    started = time.perf_counter()
    subject = header(message, "subject")
    found = _Found()
    _collect(message, found)
    opening = [Block("heading", subject, level=1), Block("paragraph", header_lines(message))]
    page = flowing_page(storable_blocks([*opening, *found.blocks]), time.perf_counter() - started)
    pages, notes = [page], list(found.notes)
    for name, part in found.attachments:
        try:
            read = _read_attachment(name, part, context, depth)
        except StageError as error:
            notes.append(Note("attachment", f"{name}: not read ({error.cause})"))
            continue
        pages.extend(_below_heading(name, read.pages))
        notes.extend([Note("attachment", f"{name}: {read.mime}"), *read.notes])
    return ParsedDocument(title_or_name(subject, context.name), _MIME, tuple(pages), tuple(notes))


def _collect(part: Message, found: _Found) -> None:
    """Sort the parts of a mail into body and attachments."""
    kind = part.get_content_type()
    name = _name(part)
    if kind == "message/rfc822":
        found.attachments.append((name or "attached mail", part))
    elif kind == "multipart/alternative" and part.is_multipart():
        _collect_best(part, found)
    elif part.is_multipart():
        for child in _children(part):
            _collect(child, found)
    elif part.get_content_disposition() == "attachment" or (name and not kind.startswith("text/")):
        if part.get_content_maintype() == "image" and part.get("content-id"):
            found.notes.append(Note("attachment", f"{name or kind}: an image within the mail"))
        else:
            found.attachments.append((name or kind, part))
    elif kind.startswith("text/") or kind == "multipart/alternative":
        found.blocks.extend(_body_blocks(part, found))
    else:
        found.notes.append(Note("attachment", f"{name or kind}: not read"))


def _collect_best(part: Message, found: _Found) -> None:
    """The best alternative that holds text."""
    for option in sorted(_children(part), key=_rank):
        inner = _Found()
        _collect(option, inner)
        if any(block.text.strip() for block in inner.blocks):
            found.blocks.extend(inner.blocks)
            found.notes.extend(inner.notes)
            found.attachments.extend(inner.attachments)
            return


def _rank(option: Message) -> int:
    kinds = {part.get_content_type() for part in option.walk()}
    ranks = (rank for rank, kind in enumerate(_PREFERENCE) if kind in kinds)
    return next(ranks, len(_PREFERENCE))


def _body_blocks(part: Message, found: _Found) -> list[Block]:
    text = _text(part)
    if part.get_content_type() != "text/html":
        return text_blocks(text)
    if not text.strip():
        return []
    shown = parse_html(text)
    found.notes.extend(shown.notes)
    return list(shown.blocks)


def _read_attachment(name: str, part: Message, context: ReadContext, depth: int) -> ParsedDocument:
    # Page numbers within it are its own, so neither checkpoints nor progress are of this file.
    inner = replace(context, name=name, finished={}, on_page=lambda _: None)
    if part.get_content_type() == "message/rfc822" and part.is_multipart():
        _require_depth(depth)
        return _read_mail(next(_children(part)), inner, depth + 1)
    content = _bytes(part)
    if sniff(content, name) == "eml":
        _require_depth(depth)
        return _read(content, inner, depth + 1)
    return reader_for(content, name)(content, inner)


def _require_depth(depth: int) -> None:
    if depth >= _MAX_DEPTH:
        raise StageError("parse", f"more than {_MAX_DEPTH} mails within each other")


def _below_heading(name: str, pages: tuple[Page, ...]) -> Iterator[Page]:
    """The pages under a heading with the attachment's name, their own headings one level down."""
    opening = tuple(storable_blocks([Block("heading", name, level=2)]))
    for index, page in enumerate(pages):
        blocks = tuple(
            replace(block, level=block.level + 2) if block.kind == "heading" else block
            for block in page.blocks
        )
        has_opening = index == 0 and page.error is None
        yield replace(page, blocks=(*opening, *blocks) if has_opening else blocks)


def _children(part: Message) -> Iterator[Message]:
    payload = part.get_payload()
    return (child for child in payload if isinstance(child, Message))


def _name(part: Message) -> str:
    name = part.get_filename("")
    return " ".join(decode_words(name).split())


def _bytes(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text(part: Message) -> str:
    """The text of a part by its declared charset, or by detection where that does not fit."""
    content = _bytes(part)
    try:
        return content.decode(part.get_content_charset("utf-8"))
    except (LookupError, UnicodeError):
        return decode_text(content) if content else ""
