"""What the commands around ingestion print."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, get_args

import typer

from ingest.sources import file_name
from ragplane.core.schema import Route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.ledger.records import LedgerStatus, Run
    from pipelines.ingestion.maintenance import VerifyReport
    from pipelines.ingestion.reembed import ReembedReport
    from pipelines.triage import TriageReport
    from retrieval.stores.base import CorpusStatus

_SHOWN_CHANGES = 20


def print_status(
    corpus: str, held: CorpusStatus | None, ledger: LedgerStatus, runs: Sequence[Run]
) -> None:
    """What a corpus holds, one line; then its last run, its ledger and the last errors."""
    if held is not None:
        pages = ", ".join(f"{count} {route}" for route, count in sorted(held.pages.items()))
        typer.echo(
            f"corpus {corpus!r}: {held.documents} documents, {sum(held.pages.values())} pages "
            f"({pages or 'none'}), {held.chunks} chunks, {held.tokens} tokens, "
            f"model {held.fingerprint} with {held.dimensions} dimensions"
        )
    else:
        typer.echo(f"corpus {corpus!r}: nothing is stored yet")
    for run in runs[:1]:
        read = ", ".join(f"{n} {name}" for name, n in run.totals.get("documents", {}).items() if n)
        at = run.started_at.astimezone(UTC)
        typer.echo(f"last run: {at:%Y-%m-%d %H:%M} UTC, {_end(run)} ({read or 'no documents'})")
    documents = ", ".join(f"{count} {state}" for state, count in sorted(ledger.documents.items()))
    typer.echo(f"ledger: {documents or 'no documents'}")
    stages = ", ".join(f"{count} at {stage}" for stage, count in sorted(ledger.stages.items()))
    if stages:
        typer.echo(f"failed: {stages}")
    if ledger.writes:
        typer.echo(f"{ledger.writes} writes wait for the store")
    for error in ledger.errors:
        page = f" page {error.page}" if error.page else ""
        typer.echo(f"error: {error.stage}: {file_name(error.source)}{page}: {error.cause}")


def _end(run: Run) -> str:
    return run.status or "not ended: it runs, or was killed"


def status_json(
    corpus: str, held: CorpusStatus | None, ledger: LedgerStatus, runs: Sequence[Run]
) -> dict[str, Any]:
    """The stable JSON of `ragplane status`."""
    pages = held.pages if held else {}
    return {
        "corpus": corpus,
        "documents": held.documents if held else 0,
        "pages": {
            "total": sum(pages.values()),
            **{route: pages.get(route, 0) for route in get_args(Route)},
        },
        "chunks": held.chunks if held else 0,
        "tokens": held.tokens if held else 0,
        "fingerprint": held.fingerprint if held else None,
        "dimensions": held.dimensions if held else None,
        "ledger": dict(ledger.documents),
        "stages": dict(ledger.stages),
        "pending_writes": ledger.writes,
        "errors": [
            {
                "document": error.source,
                "page": error.page,
                "stage": error.stage,
                "cause": error.cause,
                "at": error.at.isoformat(),
            }
            for error in ledger.errors
        ],
        "runs": [
            {
                "started_at": run.started_at.isoformat(),
                "ended_at": run.ended_at.isoformat() if run.ended_at else None,
                "status": run.status,
                **run.totals,
            }
            for run in runs
        ],
    }


def print_triage(report: TriageReport) -> None:
    """A line for each route, its commonest reasons below; then what a replay would change."""
    for route, cost in sorted(report.routes.items()):
        numbers = cost.as_json()
        sure = "" if numbers["confidence"] is None else f", confidence {numbers['confidence']:.2f}"
        tokens = f", {cost.vlm_tokens:,} vision tokens" if cost.vlm_tokens else ""
        failed = f", {cost.failed} failed" if cost.failed else ""
        typer.echo(f"{route}: {cost.pages} pages, {cost.seconds:.1f} s{sure}{tokens}{failed}")
        for reason, count in numbers["reasons"].items():
            typer.echo(f"  {count} x {reason}")
    if not report.routes:
        typer.echo("no pages")
    for change, count in report.as_json()["changes"].items():
        typer.echo(f"would change: {change}: {count} pages")
    for page in report.changed[:_SHOWN_CHANGES]:
        typer.echo(f"  {file_name(page.source)} page {page.number}: {page.after}, {page.reason}")


def print_verification(report: VerifyReport) -> None:
    """One line when all is well, else a line for each kind of fault."""
    numbers = report.as_json()
    if report.rewritten or report.removed:
        typer.echo(f"wrote {report.rewritten} documents anew, removed {report.removed} points")
    for kind in ("missing", "orphan", "stale", "duplicate"):
        if numbers[kind]:
            typer.echo(f"{kind}: {len(numbers[kind])} points")
    if report.exact:
        typer.echo("the store is as the ledger says")
    for error in report.errors:
        typer.echo(f"error: {error}", err=True)


def print_reembedding(report: ReembedReport) -> None:
    """One line: what the corpus was, and what it is."""
    if report.before == report.after:
        typer.echo(f"corpus {report.corpus!r} is of model {report.after} already")
        return
    typer.echo(
        f"corpus {report.corpus!r}: model {report.before} -> {report.after}, "
        f"{report.chunks} chunks ({report.embedded} embedded now) in {report.seconds:.1f} s; "
        "the old vectors are kept"
    )
