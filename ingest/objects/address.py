"""How an object is named: `s3://bucket/key`, the key percent-encoded."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from ragplane.core.errors import InputError

_SCHEME = "s3://"


def is_address(source: str) -> bool:
    """Whether a source, or what a person typed, names something in an object store."""
    return source.startswith(_SCHEME)


@dataclass(frozen=True, slots=True)
class Address:
    """A bucket, and a key in it or the beginning of keys."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address in a URI. A person may leave signs other than "%" as they are.

        Raises InputError if no bucket is named, or the key is no UTF-8.
        """
        bucket, _, rest = text.removeprefix(_SCHEME).partition("/")
        if not bucket:
            raise InputError(f"{text}: no bucket is named")
        try:
            key = unquote(rest, errors="strict")
            key.encode()
        except UnicodeError as error:
            raise InputError(f"{text!r}: the key is no UTF-8") from error
        return cls(bucket, key)

    @property
    def uri(self) -> str:
        """The one form in which the ledger knows it. A "/" stays, so keys below share its start."""
        return f"{_SCHEME}{self.bucket}/{quote(self.key)}"

    @property
    def is_folder(self) -> bool:
        """Whether it can only mean the keys that begin so."""
        return not self.key or self.key.endswith("/")

    def as_folder(self) -> Address:
        """The same with a "/" at the end; the whole bucket stays as it is."""
        return self if self.is_folder else Address(self.bucket, f"{self.key}/")


def is_left_out(key: str, size_bytes: int, below: str) -> bool:
    """Whether a key is hidden below the folder `below`, or stands for a folder without content."""
    hidden = any(part.startswith(".") for part in key.removeprefix(below).split("/"))
    return hidden or (key.endswith("/") and size_bytes == 0)
