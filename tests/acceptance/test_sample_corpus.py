"""The sample corpus through the library, with real parts, held to the project's floors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.answering import Answerer
from pipelines.evaluation import Evaluation, evaluate
from pipelines.ingestion.report import IngestReport
from pipelines.sample import documents_dir, questions
from ragplane import Plane
from ragplane.core.config import Settings
from retrieval.search import Searcher
from retrieval.stores.base import CorpusKey
from retrieval.stores.postgres import PostgresStore
from serve.local import LocalEncoder
from tests.conftest import make_home

CORPUS = "sample"


@dataclass(frozen=True)
class Ingested:
    """A home with the sample corpus in it, and the report of the run."""

    home: Path
    report: IngestReport


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory, model_home: Path) -> Iterator[Ingested]:
    home = make_home(tmp_path_factory.mktemp("sample") / "home", model_home)
    with Plane.open(home=home).sync as plane:
        yield Ingested(home, plane.ingest([documents_dir()], corpus=CORPUS))


@pytest.fixture
async def plane(ingested: Ingested) -> AsyncIterator[Plane]:
    async with Plane.open(home=ingested.home) as plane:
        yield plane


async def evaluated(home: Path, budget_tokens: int) -> Evaluation:
    settings = Settings(home=home)
    store = await PostgresStore.open(settings)
    encoder = await LocalEncoder.open(settings)
    try:
        searcher = Searcher(store, encoder)
        answerer = Answerer(searcher, encoder, None, settings.abstain_below)
        return await evaluate(
            searcher,
            answerer,
            questions(),
            CorpusKey("default", CORPUS),
            k=5,
            budget_tokens=budget_tokens,
        )
    finally:
        await encoder.aclose()
        await store.aclose()


def test_every_document_is_read_and_every_page_has_its_route(ingested: Ingested) -> None:
    report = ingested.report.as_json()
    assert report["status"] == "completed"
    assert report["documents"]["added"] == len(list(documents_dir().iterdir()))
    pages = report["pages"]
    assert (pages["ocr"], pages["blank"], pages["failed"]) == (5, 1, 0)
    assert pages["total"] == pages["text"] + pages["ocr"] + pages["blank"]


async def test_the_floors_of_quality_hold(ingested: Ingested) -> None:
    result = await evaluated(ingested.home, budget_tokens=400)
    assert result.recall_at_k >= 0.95
    assert result.context_recall >= 0.9
    assert result.answer_recall >= 0.6
    assert result.abstention >= 0.25
    assert all(outcome.context_tokens <= 400 for outcome in result.outcomes)
    unanswered = [o for o in result.outcomes if o.question.answer and not o.answer.text]
    assert len(unanswered) <= 1


async def test_a_citation_names_document_and_page_and_quotes_it(plane: Plane) -> None:
    answer = await plane.ask(
        "How long should the South Dome's shutter take to open?", corpus=CORPUS
    )
    assert "140 seconds" in answer.text
    first = answer.citations[0]
    assert first.document.endswith("/operations-manual.pdf")
    assert (first.first_page, first.last_page) == (5, 5)
    assert "140 seconds" in first.quote


async def test_a_letter_turned_by_90_degrees_is_read(plane: Plane) -> None:
    result = await plane.search("seal of the displacer of the cold head", corpus=CORPUS, k=1)
    assert result.hits[0].document.source.endswith("/letter-scan.pdf")


async def test_a_row_of_the_second_page_of_a_table_knows_its_header(plane: Plane) -> None:
    result = await plane.search("price of a cloud sensor in 2031", corpus=CORPUS, k=5)
    rows = [
        hit.chunk
        for hit in result.hits
        if hit.document.source.endswith("price-list-2031.pdf") and "Cloud sensor" in hit.chunk.text
    ]
    assert rows
    assert rows[0].first_page == 2
    assert "| Item | Description | Unit | Price | Delivery |" in rows[0].prefix


async def test_a_question_about_something_else_is_not_answered(plane: Plane) -> None:
    answer = await plane.ask("What is the capital of Portugal?", corpus=CORPUS)
    assert (answer.text, answer.citations) == ("", ())


async def test_another_tenant_sees_nothing(plane: Plane) -> None:
    assert await plane.status(corpus=CORPUS) is not None
    assert await plane.status(corpus=CORPUS, tenant="rival") is None


async def test_a_second_run_changes_nothing(plane: Plane) -> None:
    before = await plane.status(corpus=CORPUS)
    report = await plane.ingest([documents_dir()], corpus=CORPUS)
    assert report.as_json()["documents"]["unchanged"] == len(list(documents_dir().iterdir()))
    assert (report.chunks, await plane.status(corpus=CORPUS)) == (0, before)


def test_the_synchronous_face_gives_the_same(ingested: Ingested) -> None:
    with Plane.open(home=ingested.home).sync as plane:
        context = plane.context("Who is the Safety Officer?", corpus=CORPUS, budget=200)
        assert 0 < context.tokens <= 200
        assert "Yevka Drumm" in context.text
        assert plane.search("thorium lamp", corpus=CORPUS, k=3).hits[0].rank == 1
