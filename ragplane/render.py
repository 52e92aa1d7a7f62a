"""Results for people (plain lines, a bar on a terminal) and for machines (stable JSON)."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from compress.context import page_label
from ingest.sources import file_name
from ragplane.core.schema import Answer, Citation, Hit, SearchResult

if TYPE_CHECKING:
    from pipelines.ingestion.report import IngestReport

_SNIPPET_CHARACTERS = 240


class TerminalProgress:
    """A bar on a terminal, plain lines on stderr elsewhere, nothing when quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Bar | None = None
        if not quiet and sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[facts]}"),
                TimeElapsedColumn(),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._started = time.perf_counter()
        self._total = self._done = self._errors = 0
        self._pages: Counter[str] = Counter()

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, documents: int) -> None:
        """See Progress."""
        self._total = documents
        if self._bar is not None:
            self._bar.add_task("reading", total=documents, facts="")

    def advance(self, source: str, pages: Mapping[str, int], errors: int) -> None:
        """See Progress."""
        self._done += 1
        self._pages.update(pages)
        self._errors += errors
        if self._bar is not None:
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=self._done, facts=self.facts())
        elif not self._quiet:
            failed = ", failed" if errors else ""
            typer.echo(f"[{self._done}/{self._total}] {file_name(source)}{failed}", err=True)

    def facts(self) -> str:
        """What stands beside the bar: pages a second, routes taken, errors."""
        rate = self._pages.total() / max(time.perf_counter() - self._started, 0.001)
        routes = [f"{count} {route}" for route, count in sorted(self._pages.items())]
        errors = [f"{self._errors} errors"] if self._errors else []
        return ", ".join([f"{rate:.1f} pages/s", *routes, *errors])


def print_report(report: IngestReport) -> None:
    """The summary of a run, its errors last."""
    numbers = report.as_json()
    documents = ", ".join(
        f"{count} {name}" for name, count in numbers["documents"].items() if count
    )
    pages = numbers["pages"]
    routes = ", ".join(f"{n} {name}" for name, n in pages.items() if n and name != "total")
    typer.echo(f"{numbers['status']}: corpus {report.corpus!r}, {documents or 'no documents'}")
    if pages["total"]:
        typer.echo(f"read {pages['total']} pages ({routes}) into {report.chunks} chunks")
    typer.echo(f"took {report.seconds:.1f} s")
    for error in report.errors:
        page = f" page {error.page}" if error.page else ""
        where = f" {file_name(error.document)}{page}:" if error.document else ""
        typer.echo(f"error: {error.stage}:{where} {error.cause}", err=True)


def print_search(result: SearchResult) -> None:
    """Hits with their place, a snippet and the scores of the stages."""
    for hit in result.hits:
        chunk = hit.chunk
        snippet = " ".join(chunk.text.split())
        if len(snippet) > _SNIPPET_CHARACTERS:
            snippet = snippet[:_SNIPPET_CHARACTERS].rsplit(" ", 1)[0] + " …"
        scores = " ".join(f"{name} {score:.3f}" for name, score in hit.scores.items())
        typer.echo(f"{hit.rank}. {_place(hit.document.source, chunk.first_page, chunk.last_page)}")
        typer.echo(f"   {snippet}")
        typer.echo(f"   {scores}")
    if not result.hits:
        typer.echo("nothing found")
    _print_footer(result.timings_ms["total"], result.degradations)


def print_answer(answer: Answer) -> None:
    """The answer, its sources, and what it cost."""
    typer.echo(answer.text or "No answer: nothing in the corpus fits the question.")
    places = [
        f"  [{c.id}] {_place(c.document, c.first_page, c.last_page)}" for c in answer.citations
    ]
    for place in dict.fromkeys(places):
        typer.echo(place)
    context = answer.context
    typer.echo(
        f"  ({context.tokens} tokens of context, budget {context.budget}; "
        f"{context.tokens_retrieved} tokens retrieved)"
    )
    _print_footer(answer.timings_ms["total"], answer.degradations)


def search_json(result: SearchResult) -> dict[str, Any]:
    """The stable JSON of `ragplane search`."""
    return {
        "query": result.query,
        "hits": [_hit_json(hit) for hit in result.hits],
        "timings_ms": result.timings_ms,
        "degradations": list(result.degradations),
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """The stable JSON of `ragplane ask`."""
    context, usage = answer.context, answer.usage
    return {
        "question": answer.question,
        "answer": answer.text,
        "citations": [_citation_json(citation) for citation in answer.citations],
        "context": {
            "tokens_retrieved": context.tokens_retrieved,
            "tokens_kept": context.tokens,
            "budget": context.budget,
        },
        "usage": {
            "encoder_tokens": usage.encoder_tokens,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        },
        "timings_ms": answer.timings_ms,
        "degradations": list(answer.degradations),
    }


def _hit_json(hit: Hit) -> dict[str, Any]:
    chunk = hit.chunk
    return {
        "rank": hit.rank,
        "score": hit.score,
        "scores": hit.scores,
        "document": hit.document.source,
        "title": hit.document.title,
        "pages": [chunk.first_page, chunk.last_page],
        "text": chunk.text,
        "chunk_id": str(chunk.id),
        "heading_path": list(chunk.heading_path),
        "duplicates": list(hit.duplicates),
    }


def _citation_json(citation: Citation) -> dict[str, Any]:
    return {
        "id": citation.id,
        "document": citation.document,
        "title": citation.title,
        "pages": [citation.first_page, citation.last_page],
        "quote": citation.quote,
    }


def _place(source: str, first: int, last: int) -> str:
    return f"{file_name(source)}, {page_label(first, last)}"


def _print_footer(total_ms: float, degradations: tuple[str, ...]) -> None:
    typer.echo(f"  {total_ms:.0f} ms")
    for degradation in degradations:
        typer.echo(f"  degraded: {degradation}")
