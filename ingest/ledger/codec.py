"""Pages as bytes, for checkpoints: JSON of field values in order, behind a mark of their types.

Any change of the types makes another mark, and pages under an old mark count as not read. JSON is
the standard library's, since page text before layout may hold lone surrogates, and geometry
infinities, which stricter encoders refuse.
"""

from __future__ import annotations

import hashlib
import json
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ingest.parsed import RawPage
from ragplane.core.errors import StageError


def encode_page(page: RawPage) -> bytes:
    """The page as a checkpoint keeps it."""
    text = json.dumps(page, default=_plain, separators=(",", ":"))
    return f"{_mark()}{text}".encode("ascii")


def decode_page(payload: bytes) -> RawPage | None:
    """The page of a checkpoint; None if it was written for other types."""
    text = payload.decode("ascii")
    mark = _mark()
    if not text.startswith(mark):
        return None
    page = _reader(RawPage)(json.loads(text[len(mark) :]))
    return typing.cast(RawPage, page)


def _plain(value: object) -> list[object]:
    if isinstance(value, StageError):
        return [value.stage, value.cause, value.document, value.page]
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    raise TypeError(f"no form for {type(value).__name__}")


@cache
def _mark() -> str:
    shape = "\n".join(_shape(RawPage))
    return hashlib.sha256(shape.encode()).hexdigest()[:8]


def _shape(kind: Any) -> Iterator[str]:
    """The names and types of all that a value of this type consists of."""
    yield str(kind)
    parts = get_type_hints(kind) if _has_fields(kind) else dict(enumerate(get_args(kind)))
    for name, part in parts.items():
        yield str(name)
        if get_origin(kind) is not Literal:
            yield from _shape(part)


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """What makes a value of this type from its JSON."""
    if kind is StageError:
        return lambda value: StageError(value[0], value[1], document=value[2], page=value[3])
    if _has_fields(kind):
        readers = [_reader(part) for part in get_type_hints(kind).values()]
        return lambda values: kind(
            *(read(value) for read, value in zip(readers, values, strict=True))
        )
    if get_origin(kind) is tuple:
        read_item = _reader(get_args(kind)[0])
        return lambda values: tuple([read_item(value) for value in values])
    if get_origin(kind) in (Union, types.UnionType):
        [some] = [part for part in get_args(kind) if part is not types.NoneType]
        read_some = _reader(some)
        return lambda value: None if value is None else read_some(value)
    return float if kind is float else _same


def _same(value: Any) -> Any:
    return value


def _has_fields(kind: Any) -> bool:
    return is_dataclass(kind) or (isinstance(kind, type) and hasattr(kind, "_fields"))
