"""Headers of mails: decoded words (RFC 2047), raw 8-bit headers, and the mark of a mail."""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message

from ingest.encoding import decode_text
from ragplane.core.errors import StageError

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_FIELD = re.compile(r"([!-9;-~]{1,80}):")
_OF_PEOPLE = frozenset({"from", "subject"})
_OF_MACHINES = frozenset(
    "received message-id mime-version return-path delivered-to content-type".split()
)


def is_mail(head: str, name: str) -> bool:
    """Whether text begins as a mail does: a block of header fields and nothing else.

    They name a sender or subject, and hold a field that programs write; under a name that ends in
    `.eml` sender and subject are enough.
    """
    names = _field_names(head)
    if not names & _OF_PEOPLE:
        return False
    return bool(names & _OF_MACHINES) or (name.lower().endswith(".eml") and names >= _OF_PEOPLE)


def header(message: Message, name: str) -> str:
    """A header as text on one line; empty where there is none."""
    raw = next((value for key, value in message.raw_items() if key.lower() == name), "")
    return " ".join(decode_words(str(raw)).split())


def header_lines(message: Message) -> str:
    """The headers that people read, one a line."""
    values = ((name, header(message, name.lower())) for name in _SHOWN)
    return "\n".join(f"{name}: {value}" for name, value in values if value)


def decode_words(value: str) -> str:
    """A header's value with its encoded words decoded; raw 8-bit text is detected."""
    try:
        parts = decode_header(_unescaped(value))
    except (HeaderParseError, Base64Error, ValueError):
        return _unescaped(value)
    return "".join(
        text if isinstance(text, str) else _decoded(text, charset) for text, charset in parts
    )


def _decoded(content: bytes, charset: str | None) -> str:
    try:
        return content.decode(charset or "ascii")
    except (LookupError, UnicodeError):
        return content.decode("utf-8", errors="replace")


def _unescaped(value: str) -> str:
    """The email library gives bytes that are not ASCII as lone surrogates."""
    if value.isascii():
        return value
    content = value.encode("utf-8", errors="surrogateescape")
    try:
        return decode_text(content)
    except StageError:
        return content.decode("utf-8", errors="replace")


def _field_names(head: str) -> set[str]:
    lines = head.lstrip("\ufeff\r\n").splitlines()
    if lines and lines[0].startswith("From "):  # the first line of a mailbox file
        del lines[0]
    names: set[str] = set()
    for line in lines:
        field = _FIELD.match(line)
        if field:
            names.add(field[1].lower())
        elif not line.strip():
            break
        elif not (names and line[0] in " \t"):
            return set()
    return names
