"""Damaged files of every format: a document or an error of the parse, nothing else."""

from __future__ import annotations

import random

import pytest

from ragplane.core.errors import StageError
from tests.unit.ingest.conftest import Read
from tests.unit.ingest.readers.archives import packed, parts_of
from tests.unit.ingest.readers.samples import SAMPLES

ROUNDS = 25
NUMBERS = bytes.maketrans(b"0123456789", b"a9-9999.9x")


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_part_gives_a_document_or_a_named_error(name: str, read: Read) -> None:
    """Behaviour 10."""
    content = SAMPLES[name]()
    is_zip = content.startswith(b"PK")
    parts = parts_of(content) if is_zip else {"": content}
    generator = random.Random(name)  # the same damage in every run
    for _ in range(ROUNDS):
        part = generator.choice(sorted(parts))
        changed = parts | {part: damaged(parts[part], generator)}
        damaged_file = packed(changed) if is_zip else changed[""]
        try:
            assert read(damaged_file, name).title
        except StageError as error:
            assert error.stage == "parse"


@pytest.mark.parametrize("name", [name for name in SAMPLES if name[-4:] not in (".eml", "json")])
def test_damaged_archive_is_refused_or_read(name: str, read: Read) -> None:
    """Behaviour 10."""
    content = SAMPLES[name]()
    generator = random.Random(name)
    for _ in range(ROUNDS):
        try:
            assert read(damaged(content, generator), name).title
        except StageError as error:
            assert error.stage == "parse"


def damaged(content: bytes, generator: random.Random) -> bytes:
    """The content with a stretch of it cut out, doubled, or with bytes changed."""
    if not content:
        return b"x"
    start = generator.randrange(len(content))
    length = generator.randint(1, 200)
    stretch = content[start : start + length]
    kind = generator.choice(("cut", "doubled", "changed", "truncated", "numbers"))
    if kind == "cut":
        return content[:start] + content[start + length :]
    if kind == "doubled":
        return content[:start] + stretch + content[start:]
    if kind == "truncated":
        return content[:start]
    if kind == "numbers":
        return content[:start] + content[start:].translate(NUMBERS)
    noise = bytes(byte ^ generator.choice((0, 0, 1, 128)) for byte in stretch)
    return content[:start] + noise + content[start + length :]
