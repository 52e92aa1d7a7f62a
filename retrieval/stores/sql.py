"""Named statements: `-- name: NAME --`, a line that says what it does, and the statement."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAMED = re.compile(r"^-- name: (\w+) --\n-- .+\n", re.MULTILINE)


def statement(name: str, **numbers: int) -> bytes:
    """The statement of that name. `numbers` fill its `{braces}`, where no parameter may stand."""
    text = named_statements("retrieval.stores", "queries.sql")[name]
    for key, number in numbers.items():
        text = text.replace(f"{{{key}}}", str(int(number)))
    return text.encode()


def schema_steps() -> list[bytes]:
    """The steps of schema.sql in order: the first makes version 1 of an empty database."""
    steps = named_statements("retrieval.stores", "schema.sql")
    return [text.encode() for text in steps.values()]


@cache
def named_statements(package: str, file: str) -> dict[str, str]:
    """The statements of a file of `package` by name, in the order of the file."""
    text = (files(package) / file).read_text(encoding="utf-8")
    _, *parts = _NAMED.split(text)
    return dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
