import re
from pathlib import Path

import pytest

import ingest.ledger
from ingest.ledger.sql import statement

_FOLDER = Path(ingest.ledger.__file__).parent
_NAMES = re.findall(r"-- name: (\w+) --", (_FOLDER / "ledger.sql").read_text())


@pytest.mark.parametrize("name", _NAMES)
def test_each_statement_is_named_described_and_used(name: str) -> None:
    assert not statement(name).startswith(b"--")
    assert any(f'"{name}"' in file.read_text() for file in _FOLDER.glob("*.py"))
