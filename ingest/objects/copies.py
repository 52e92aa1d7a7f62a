"""An object's content in a file, for as long as it is read."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from ingest.objects.address import Address
from ingest.objects.store import ObjectStore
from ragplane.core.errors import StageError, describe

_MOST_NAME_BYTES = 200  # a file system takes 255, a key is longer


class ObjectCopy:
    """A file with the content of an object, removed at the end of a `with` block.

    The file has the object's name, which may become a title. At most `most_bytes` are fetched,
    for at most `timeout_s`. Entering and `fetch` raise StageError `parse`.
    """

    def __init__(self, source: str, most_bytes: int, timeout_s: float) -> None:
        self._address = Address.parse(source)
        self._most_bytes = most_bytes
        self._timeout_s = timeout_s
        self._left = threading.Event()

    def __enter__(self) -> Self:
        try:
            self._folder = TemporaryDirectory(prefix="ragplane-", ignore_cleanup_errors=True)
        except OSError as error:
            raise StageError("parse", f"no copy: {error.strerror or describe(error)}") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._left.set()
        self._folder.cleanup()

    def fetch(self, store: ObjectStore) -> Path:
        """Fill the file. Runs in another thread, and gives up when the block is left."""
        path = Path(self._folder.name, copy_name(self._address.key))
        end_s = time.monotonic() + self._timeout_s
        left_bytes = self._most_bytes
        try:
            with path.open("wb") as file:
                for piece in store.read(self._address):
                    left_bytes -= len(piece)
                    self._check(left_bytes, end_s)
                    file.write(piece)
        except OSError as error:
            raise StageError("parse", f"no copy: {error.strerror or describe(error)}") from error
        return path

    def _check(self, left_bytes: int, end_s: float) -> None:
        if left_bytes < 0:
            raise StageError("parse", f"larger than {self._most_bytes >> 20:,} MiB")
        if self._left.is_set() or time.monotonic() > end_s:
            raise StageError("parse", f"was not fetched within {self._timeout_s:g} s")


def copy_name(key: str) -> str:
    """The last part of a key as a file name: its end, if it is too long for one."""
    name = key.rstrip("/").rsplit("/", 1)[-1].replace("\0", "")
    name = name.encode()[-_MOST_NAME_BYTES:].decode(errors="ignore")
    return "object" if name in ("", ".", "..") else name
