"""The named statements of queries.sql, and schema.sql."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAMED = re.compile(r"^-- name: (\w+) --\n-- .+\n", re.MULTILINE)


def statement(name: str, **numbers: int) -> bytes:
    """The statement of that name. `numbers` fill its `{braces}`, where no parameter may stand."""
    text = _statements()[name]
    for key, number in numbers.items():
        text = text.replace(f"{{{key}}}", str(int(number)))
    return text.encode()


@cache
def schema() -> bytes:
    """The whole of schema.sql."""
    return _read("schema.sql").encode()


@cache
def _statements() -> dict[str, str]:
    _, *parts = _NAMED.split(_read("queries.sql"))
    return dict(zip(parts[::2], (text.strip() for text in parts[1::2]), strict=True))


def _read(name: str) -> str:
    return (files("retrieval.stores") / name).read_text(encoding="utf-8")
