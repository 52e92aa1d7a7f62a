"""The commands around ingestion: ingest, worker, status, triage, verify, delete, reembed."""

from __future__ import annotations

import asyncio
import signal
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

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
from ragplane.core.config import DEFAULT_TENANT, load_settings
from ragplane.core.cpu import available_cpus
from ragplane.core.errors import ConfigError, InputError
from ragplane.render import TerminalProgress, print_report
from ragplane.render_ingest import (
    print_reembedding,
    print_status,
    print_triage,
    print_verification,
    status_json,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.ledger.records import LedgerStatus, Run
    from ragplane.plane import Plane
    from retrieval.stores.base import CorpusStatus


def ingest(
    paths: Annotated[
        list[str], typer.Argument(help="Files, folders and s3://bucket/prefix to read.")
    ],
    corpus: Corpus,
    tenant: Tenant = DEFAULT_TENANT,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Read documents into a corpus.

    Files that did not change are left alone, changed ones replace their chunks, and files that
    are gone from a given folder are removed. An s3:// address is a folder or an object of any
    S3-compatible store (AWS_ENDPOINT_URL and the other AWS_* variables). Exit code 0: all read;
    3: some failed; 1: the run failed; 2: wrong use.
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


def status(
    corpus: Annotated[
        str | None, typer.Option("--corpus", help="One corpus; default: every one of the tenant.")
    ] = None,
    tenant: Tenant = DEFAULT_TENANT,
    as_json: AsJson = False,
) -> None:
    """Show what a corpus holds, what waits, and what went wrong at which stage."""

    async def work(plane: Plane) -> None:
        known = await plane.corpora(tenant=tenant)
        names = known if corpus is None else [corpus]
        found = [await _status(plane, name, tenant) for name in names]
        if corpus is not None and corpus not in known and found[0].held is None:
            raise InputError(f"corpus {corpus!r} does not exist for tenant {tenant!r}")
        if as_json:
            values = [status_json(*one) for one in found]
            print_json({"corpora": values} if corpus is None else values[0])
            return
        for one in found:
            print_status(*one)
        if not found:
            typer.echo(f"tenant {tenant!r} has no corpus")

    with_plane(work)


class _Status(NamedTuple):
    corpus: str
    held: CorpusStatus | None
    ledger: LedgerStatus
    runs: Sequence[Run]


async def _status(plane: Plane, corpus: str, tenant: str) -> _Status:
    held = await plane.status(corpus=corpus, tenant=tenant)
    ledger = await plane.progress(corpus=corpus, tenant=tenant)
    return _Status(corpus, held, ledger, await plane.runs(corpus=corpus, tenant=tenant))


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
        return 0 if report.exact and not report.errors else EXIT_WITH_ERRORS

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


def reembed(
    corpus: Corpus,
    embed_model: Annotated[
        str | None,
        typer.Option(help="A hub id or a folder; default: the model of the settings."),
    ] = None,
    tenant: Tenant = DEFAULT_TENANT,
    drop_old: Annotated[
        bool,
        typer.Option(
            "--drop-old", help="Remove the vectors not in use: the old ones, or half of new ones."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring a corpus to another embedding model while it is searched with the old one.

    New vectors are made beside the old, compared with the ledger, and put in use at once. A run
    that was killed goes on where it stopped. The old vectors stay until --drop-old; until then,
    reembed with the old model leads back.
    """
    if embed_model is not None and drop_old:
        raise InputError("--drop-old takes no --embed-model")
    if embed_model is not None and load_settings().encoder_url is not None:
        raise ConfigError("encoder_url is set, so the model is that server's: omit --embed-model")

    async def change(plane: Plane) -> None:
        report = await plane.reembed(corpus=corpus, tenant=tenant)
        print_json(report.as_json()) if as_json else print_reembedding(report)

    async def drop(plane: Plane) -> None:
        dropped = await plane.drop_unused(corpus=corpus, tenant=tenant)
        if as_json:
            print_json({"corpus": corpus, "dropped": dropped})
        else:
            typer.echo(f"dropped the vectors of {dropped}" if dropped else "nothing to drop")

    with_plane(drop if drop_old else change, embed_model=embed_model)


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error
