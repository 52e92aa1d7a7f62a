"""The commands around ingestion: ingest, worker, status, triage, verify, delete."""

from __future__ import annotations

import asyncio
import signal
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragplane.command import (
    EXIT_BY_STATUS,
    EXIT_FAILED,
    EXIT_WITH_ERRORS,
    AsJson,
    Corpus,
    Tenant,
    Workers,
    print_json,
    with_plane,
)
from ragplane.core.config import DEFAULT_TENANT
from ragplane.core.cpu import available_cpus
from ragplane.core.errors import ConfigError, InputError
from ragplane.render import TerminalProgress, print_report
from ragplane.render_ingest import print_status, print_triage, print_verification, status_json

if TYPE_CHECKING:
    from ragplane.plane import Plane


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders to read.")],
    corpus: Corpus,
    tenant: Tenant = DEFAULT_TENANT,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Read documents into a corpus.

    Files that did not change are left alone, changed ones replace their chunks, and files that
    are gone from a given folder are removed. Exit code 0: all read; 3: some failed; 1: the run
    failed; 2: wrong use.
    """

    async def work(plane: Plane) -> int:
        with TerminalProgress(quiet=as_json) as progress:
            report = await plane.ingest(
                paths, corpus=corpus, tenant=tenant, workers=workers, progress=progress
            )
        print_json(report.as_json()) if as_json else print_report(report)
        return EXIT_BY_STATUS[report.status]

    raise typer.Exit(with_plane(work))


def worker(
    workers: Workers = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when nothing waits any more.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Work on documents of any corpus that wait in the ledger, beside other workers.

    SIGTERM and SIGINT end it once the documents under way are done.
    """

    async def work(plane: Plane) -> int:
        from pipelines.ingestion.service import Worker

        count = workers or available_cpus()
        service = Worker(await plane.parts(count), count)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, service.stop)
        counts = await service.run(until_idle=until_idle)
        if as_json:
            print_json(dict(counts))
        else:
            typer.echo(", ".join(f"{n} {name}" for name, n in counts.items()) or "nothing waited")
        return EXIT_FAILED if counts["stopped"] else EXIT_WITH_ERRORS if counts["failed"] else 0

    raise typer.Exit(with_plane(work))


def status(corpus: Corpus, tenant: Tenant = DEFAULT_TENANT, as_json: AsJson = False) -> None:
    """Show what a corpus holds, what waits, and what went wrong at which stage."""

    async def work(plane: Plane) -> None:
        held = await plane.status(corpus=corpus, tenant=tenant)
        ledger = await plane.progress(corpus=corpus, tenant=tenant)
        if held is None and not ledger.documents:
            raise InputError(f"corpus {corpus!r} does not exist for tenant {tenant!r}")
        if as_json:
            print_json(status_json(corpus, held, ledger))
        else:
            print_status(corpus, held, ledger)

    with_plane(work)


def triage(
    corpus: Corpus,
    tenant: Tenant = DEFAULT_TENANT,
    replay: Annotated[
        Path | None, typer.Option(help="A TOML file of thresholds: what would they change?")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which way the pages of a corpus were read, why, and what it cost."""

    async def work(plane: Plane) -> None:
        from ingest.triage import Thresholds
        from pipelines.triage import triage_report

        thresholds = None if replay is None else Thresholds.from_mapping(_read_toml(replay))
        rows = await plane.triage_rows(corpus=corpus, tenant=tenant)
        report = await triage_report(rows, thresholds)
        print_json(report.as_json()) if as_json else print_triage(report)

    with_plane(work)


def verify(
    corpus: Corpus,
    tenant: Tenant = DEFAULT_TENANT,
    repair: Annotated[
        bool, typer.Option("--repair", help="Write anew what is missing, remove what is too much.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the store with the ledger. Exit code 0: they agree; 3: they do not."""

    async def work(plane: Plane) -> int:
        report = await plane.verify(corpus=corpus, tenant=tenant, repair=repair)
        print_json(report.as_json()) if as_json else print_verification(report)
        return 0 if report.exact else EXIT_WITH_ERRORS

    raise typer.Exit(with_plane(work))


def delete(
    corpus: Corpus,
    paths: Annotated[
        list[str] | None, typer.Argument(help="Files or source URIs; none with --all.")
    ] = None,
    tenant: Tenant = DEFAULT_TENANT,
    everything: Annotated[
        bool, typer.Option("--all", help="Every document of the corpus.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove documents from a corpus. A file that is still there comes back with the next run."""
    if everything == bool(paths):
        raise InputError("delete needs documents, or --all, and not both")

    async def work(plane: Plane) -> int:
        gone, errors = await plane.delete(
            None if everything else paths or [], corpus=corpus, tenant=tenant
        )
        if as_json:
            print_json({"deleted": gone, "errors": [str(error) for error in errors]})
        else:
            typer.echo(f"deleted {gone} documents")
            for error in errors:
                typer.echo(f"error: {error}", err=True)
        return EXIT_WITH_ERRORS if errors else 0

    raise typer.Exit(with_plane(work))


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error
