"""What is asked of a corpus without reading or embedding needs no model's files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ragplane.core.errors import InputError, ModelError
from ragplane.plane import Plane
from retrieval.stores.base import CorpusKey
from tests.integration.ingest.ledger_kit import file, read_and_store


@pytest.fixture
async def plane(postgres_home: Path) -> AsyncIterator[Plane]:
    async with Plane.open(home=postgres_home, embed_model="/nowhere/model") as plane:
        yield plane


async def test_a_corpus_is_looked_at_and_deleted_without_the_model(
    plane: Plane, key: CorpusKey
) -> None:
    """Behaviours 22 and 24: the operator's machine may lack the model."""
    ledger = (await plane.holdings()).ledger
    await read_and_store(ledger, key, file("a", "a"))
    scope = {"corpus": key.corpus, "tenant": key.tenant}
    assert await plane.corpora(tenant=key.tenant) == [key.corpus]
    assert (await plane.progress(**scope)).documents == {"done": 1}
    assert [row.number async for row in await plane.triage_rows(**scope)] == [1, 2]
    assert len((await plane.verify(**scope)).found.missing) == 2
    with pytest.raises(InputError, match="does not exist"):
        await plane.drop_unused(**scope)
    assert await plane.delete(None, **scope) == (1, [])
    with pytest.raises(ModelError):
        await plane.ingest(["/"], **scope)
