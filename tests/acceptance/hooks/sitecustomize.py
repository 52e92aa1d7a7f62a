"""What tests put into parser processes, by a PYTHONPATH that begins with this folder.

Pages take READ_PAGE_S longer, and each is noted in the file READ_LOG, a line "NAME NUMBER". Files
of certain names misbehave as only native code would: `crash.*`, `spin.*`, `greedy.*`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

if "ingest.parser_process" in sys.orig_argv:
    import ingest.parse
    from ingest.parsed import ParsedDocument, RawPage
    from ingest.readers.base import ReadContext, Reader
    from ingest.sniff import reader_for

    def _misbehave(stem: str) -> None:
        if stem == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        while stem == "spin":
            pass
        hoard: list[bytes] = []
        while stem == "greedy":
            hoard.append(os.urandom(4 << 20))
            time.sleep(0.001)

    def _watched(context: ReadContext) -> ReadContext:
        def on_page(page: RawPage) -> None:
            time.sleep(float(os.environ.get("READ_PAGE_S", "0")))
            with Path(os.environ["READ_LOG"]).open("a") as log:
                log.write(f"{context.name} {page.number}\n")
            context.on_page(page)

        return replace(context, on_page=on_page)

    def _reader_for(content: bytes, name: str) -> Reader:
        reader = reader_for(content, name)

        def read(content: bytes, context: ReadContext) -> ParsedDocument:
            _misbehave(Path(name).stem)
            return reader(content, _watched(context))

        return read

    vars(ingest.parse)["reader_for"] = _reader_for
