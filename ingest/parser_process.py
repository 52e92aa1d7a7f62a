"""The process that parses: `python -m ingest.parser_process FD PARENT`.

Over the pipe it gets the spec, then requests. For each it sends the hash of the content, is told
which pages are known, sends each page that it reads, and at last the result or the error.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from ingest.options import ParserSpec
from ingest.parsed import ParseRequest, ParseResult, RawPage
from ragplane.core.errors import StageError, describe

if TYPE_CHECKING:
    from ingest.parse import Parser

_LOOK_EVERY_S = 1.0


def serve(connection: Connection, parent: int) -> None:
    """Answer requests until the pipe closes, or the process `parent` is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    try:
        spec: ParserSpec = connection.recv()
        parser = cache(lambda: _load(spec))
        while True:
            request: ParseRequest = connection.recv()
            connection.send(_outcome(parser, request, connection))
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the parent is gone
        return


def _load(spec: ParserSpec) -> Parser:
    # The readers take seconds to import.
    from ingest.parse import Parser

    return Parser(spec)


def _outcome(
    parser: Callable[[], Parser], request: ParseRequest, connection: Connection
) -> ParseResult | StageError:
    def finished(sha256: str) -> Mapping[int, RawPage]:
        connection.send(sha256)
        pages: Mapping[int, RawPage] = connection.recv()
        return pages

    try:
        return parser().parse(request, finished, connection.send)
    except StageError as error:
        return error
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # noqa: BLE001 - a reader's surprise costs its document only
        return StageError("parse", describe(error))


def _end_with_parent(parent: int) -> None:
    """End when the parent is gone: a parser that spins would not notice the closed pipe."""
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY_S)
    os._exit(1)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), int(sys.argv[2]))
