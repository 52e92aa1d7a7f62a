"""The command line. Exit codes: 0 done, 1 failed, 2 wrong use, 3 done with errors, 130
interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ragplane.command import (
    EXIT_BY_STATUS,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    AsJson,
    Corpus,
    Tenant,
    print_json,
    with_plane,
)
from ragplane.core import __version__
from ragplane.core.config import DEFAULT_BUDGET_TOKENS, DEFAULT_TENANT
from ragplane.core.errors import ConfigError, InputError, RagplaneError, describe
from ragplane.ingest_commands import delete, ingest, reembed, status, triage, verify, worker
from ragplane.render import (
    TerminalProgress,
    answer_json,
    print_answer,
    print_report,
    print_search,
    search_json,
)
from ragplane.serve_command import serve

if TYPE_CHECKING:
    from ragplane.plane import Plane

app = typer.Typer(
    name="ragplane",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Turn documents into an index, search it, and get short, cited answers. "
    "Settings also come from RAGPLANE_* variables and ragplane.toml; data lives in RAGPLANE_HOME.",
)

Budget = Annotated[int, typer.Option("--budget", help="Tokens of context at most.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ragplane {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Options before the command. The version is printed by its callback."""


@app.command(no_args_is_help=True)
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    corpus: Corpus,
    k: Annotated[int, typer.Option("-k", min=1, help="How many hits.")] = 5,
    tenant: Tenant = DEFAULT_TENANT,
    as_json: AsJson = False,
) -> None:
    """Find the passages that fit a query best: dense and lexical search, fused and reranked."""

    async def work(plane: Plane) -> None:
        result = await plane.search(query, corpus=corpus, tenant=tenant, k=k)
        print_json(search_json(result)) if as_json else print_search(result)

    with_plane(work)


@app.command(no_args_is_help=True)
def ask(
    question: Annotated[str, typer.Argument(help="A question to the documents.")],
    corpus: Corpus,
    budget: Budget = DEFAULT_BUDGET_TOKENS,
    tenant: Tenant = DEFAULT_TENANT,
    generate_url: Annotated[
        str | None,
        typer.Option(help="An OpenAI-compatible server (ending in /v1) that writes the answer."),
    ] = None,
    generate_model: Annotated[
        str | None, typer.Option(help="Its model; default: the first it lists.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question from the corpus, with the document and pages of each statement."""

    async def work(plane: Plane) -> None:
        answer = await plane.ask(question, corpus=corpus, tenant=tenant, budget=budget)
        print_json(answer_json(answer)) if as_json else print_answer(answer)

    with_plane(work, generate_url=generate_url, generate_model=generate_model)


@app.command()
def demo() -> None:
    """Read the sample corpus (an invented observatory) and ask it some questions."""
    from pipelines.demo import CORPUS, QUESTIONS
    from pipelines.sample import documents_dir

    async def work(plane: Plane) -> int:
        with TerminalProgress(quiet=False) as progress:
            report = await plane.ingest([documents_dir()], corpus=CORPUS, progress=progress)
        print_report(report)
        for question in QUESTIONS if report.status == "completed" else ():
            typer.echo(f"\n? {question}")
            print_answer(await plane.ask(question, corpus=CORPUS))
        return EXIT_BY_STATUS[report.status]

    raise typer.Exit(with_plane(work))


app.command(no_args_is_help=True)(ingest)
app.command(no_args_is_help=True)(triage)
app.command(no_args_is_help=True)(verify)
app.command(no_args_is_help=True)(delete)
app.command(no_args_is_help=True)(reembed)
app.command()(status)
app.command()(worker)
app.command()(serve)


def main() -> NoReturn:
    """Run the command line and exit: one line for what people can mend, a traceback for defects."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        app(standalone_mode=True)
    except (InputError, ConfigError) as error:
        _quit(error, EXIT_USAGE)
    except RagplaneError as error:
        _quit(error, EXIT_FAILED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader of our output is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    sys.exit(0)


def _quit(error: RagplaneError, code: int) -> NoReturn:
    typer.echo(f"ragplane: {describe(error).split(': ', 1)[1]}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
