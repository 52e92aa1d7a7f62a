"""What the commands share: their common options, a plane to work with, JSON for machines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ragplane.core import telemetry
from ragplane.core.config import load_settings
from ragplane.core.cpu import keep_blas_single_threaded

if TYPE_CHECKING:
    from ragplane.plane import Plane

T = TypeVar("T")

EXIT_FAILED, EXIT_USAGE, EXIT_WITH_ERRORS, EXIT_INTERRUPTED = 1, 2, 3, 130
EXIT_BY_STATUS = {"completed": 0, "completed_with_errors": EXIT_WITH_ERRORS, "failed": EXIT_FAILED}

Corpus = Annotated[str, typer.Option("--corpus", help="Name of the collection of documents.")]
Tenant = Annotated[str, typer.Option("--tenant", help="Owner; tenants never see each other.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Parser processes; default: one a CPU.")
]


def with_plane(work: Callable[[Plane], Awaitable[T]], **settings: Any) -> T:
    """Run `work` with a plane of these settings, which is closed afterwards."""
    from ragplane.plane import Plane  # seconds of imports that --help does not need

    loaded = load_settings(**settings)
    telemetry.configure(loaded)
    keep_blas_single_threaded()

    async def run() -> T:
        async with Plane(loaded) as plane:
            return await work(plane)

    return asyncio.run(run())


def print_json(value: Any) -> None:
    """One JSON value, indented."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))
