"""Names of collections, `corpus__model__dimensions__vN`, and of the alias of a corpus."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

_MAX_CHARACTERS = 64
_HASH_CHARACTERS = 8
_SAFE = re.compile(r"[a-z0-9](?:[a-z0-9.-]|_(?!_))*(?<!_)")
_UNSAFE = re.compile(r"[^a-z0-9.-]+")
_NAME = re.compile(r"(?P<alias>.+)__(?P<model>.+)__(?P<dimensions>\d+)__v(?P<version>\d+)")


class CollectionName(NamedTuple):
    """A collection's name in its parts. `alias` and `model` are slugs, `version` counts from 1."""

    alias: str
    model: str
    dimensions: int
    version: int

    def __str__(self) -> str:
        return f"{self.alias}__{self.model}__{self.dimensions}__v{self.version}"


def slug(name: str) -> str:
    """`name` in lower-case letters, digits, `.`, `-` and single `_`; the same for the same name.

    A name that had to be changed ends with a hash of it, so that two names never share a slug.
    """
    if len(name) <= _MAX_CHARACTERS and _SAFE.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8")).hexdigest()[:_HASH_CHARACTERS]
    readable = _UNSAFE.sub("-", name.lower()).strip("-.")[: _MAX_CHARACTERS - len(digest) - 1]
    return f"{readable}-{digest}" if readable else digest


def parse(collection: str) -> CollectionName | None:
    """The parts of a collection's name; None if the collection is not one of ours."""
    match = _NAME.fullmatch(collection)
    if not match:
        return None
    alias, model, dimensions, version = match.groups()
    return CollectionName(alias, model, int(dimensions), int(version))


def of_corpus(collections: list[str], corpus: str) -> list[CollectionName]:
    """The collections of this corpus, oldest version first."""
    alias = slug(corpus)
    named = (parse(collection) for collection in collections)
    return sorted((name for name in named if name and name.alias == alias), key=lambda n: n.version)


def next_name(
    collections: list[str], corpus: str, fingerprint: str, dimensions: int
) -> CollectionName:
    """The name of a collection that comes after all collections of this corpus."""
    last = max((name.version for name in of_corpus(collections, corpus)), default=0)
    return CollectionName(slug(corpus), slug(fingerprint), dimensions, last + 1)
