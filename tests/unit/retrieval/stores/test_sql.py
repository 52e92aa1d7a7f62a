import re
from pathlib import Path

import pytest

import retrieval.stores
from retrieval.stores.sql import schema_steps, statement

_FOLDER = Path(retrieval.stores.__file__).parent
_NAMES = re.findall(r"-- name: (\w+) --", (_FOLDER / "queries.sql").read_text())


@pytest.mark.parametrize("name", _NAMES)
def test_each_statement_is_named_described_and_used(name: str) -> None:
    assert statement(name, dimensions=8).strip()
    assert not statement(name).startswith(b"--")
    assert any(f'"{name}"' in file.read_text() for file in _FOLDER.glob("*.py"))


def test_numbers_fill_the_braces() -> None:
    assert b"halfvec(384)" in statement("dense", dimensions=384)
    assert b"{" not in statement("create_embedding_index", dimensions=384)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(KeyError):
        statement("nothing")


def test_the_schema_is_a_series_of_steps() -> None:
    first, second, *_ = schema_steps()
    assert b"create table if not exists ragplane.postings" in first
    assert b"alter table ragplane.pages" in second
