"""Parser processes: they work, they are killed, they hang, and the next document is parsed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast
from uuid import UUID

import psutil
import pymupdf
import pytest

from ingest.options import ParserOptions, ParserSpec
from ingest.parsed import ParseRequest, ParseResult, RawPage
from ingest.workers import ParserProcess
from ragplane.core.errors import StageError

MakeParser = Callable[..., ParserProcess]


class Kept:
    """Checkpoints that remember."""

    def __init__(self) -> None:
        self.pages: dict[int, RawPage] = {}
        self.told: list[int] = []

    async def finished(self, sha256: str) -> Mapping[int, RawPage]:
        return dict(self.pages)

    async def keep(self, sha256: str, pages: Sequence[RawPage]) -> None:
        assert len(sha256) == 64
        self.told += [page.number for page in pages]
        self.pages |= {page.number: page for page in pages}


def request_for(path: Path) -> ParseRequest:
    return ParseRequest(path, "file:///a.txt", "acme", "manuals", UUID(int=1), generation=1)


@pytest.fixture
def good(tmp_path: Path) -> ParseRequest:
    file = tmp_path / "notes.txt"
    file.write_text("One paragraph.")
    return request_for(file)


@pytest.fixture
def stalled(tmp_path: Path) -> ParseRequest:
    """A file that blocks whoever opens it, for nothing is ever written to it."""
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    return request_for(pipe)


@pytest.fixture
async def make_parser(tokenizer_file: Path) -> AsyncIterator[MakeParser]:
    parsers: list[ParserProcess] = []

    def make(timeout_s: float = 120.0, memory_bytes: int = 4 << 30) -> ParserProcess:
        options = ParserOptions(tokenizer_file, limit_tokens=40)
        spec = ParserSpec(options, Path("home"), timeout_s=timeout_s, memory_bytes=memory_bytes)
        parsers.append(ParserProcess(spec))
        return parsers[-1]

    yield make
    for parser in parsers:
        parser.close()


def write_pages(file: Path, count: int) -> None:
    with pymupdf.open() as document:
        for number in range(count):
            document.new_page().insert_text((72, 72), f"This is page {number + 1} of the text.")
        document.save(file)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


async def assert_parses(parser: ParserProcess, request: ParseRequest) -> None:
    result = await parser.parse(request)
    assert [chunk.text for chunk in result.chunks] == ["One paragraph."]


@asynccontextmanager
async def parsing_under_way(
    parser: ParserProcess, stalled: ParseRequest
) -> AsyncIterator[asyncio.Task[ParseResult]]:
    """A parse that has opened the stalled file and waits for what is in it."""
    parsing = asyncio.create_task(parser.parse(stalled))
    pipe = await asyncio.to_thread(stalled.path.open, "wb")  # returns when the parser opens it
    with pipe:
        yield parsing


async def test_errors_come_back_and_a_killed_process_is_replaced(
    make_parser: MakeParser, good: ParseRequest, stalled: ParseRequest, tmp_path: Path
) -> None:
    parser = make_parser()
    before = children()
    await assert_parses(parser, good)
    [process] = children() - before

    with pytest.raises(StageError, match="parse: No such file") as caught:
        await parser.parse(request_for(tmp_path / "absent.txt"))
    assert caught.value.stage == "parse"

    # Not a path: the reader's surprise is an error of this document.
    with pytest.raises(StageError, match=r"parse: AttributeError: .*read_bytes"):
        await parser.parse(request_for(cast(Path, "no path")))

    await assert_parses(parser, good)
    assert children() - before == {process}  # errors cost no process

    async with parsing_under_way(parser, stalled) as parsing:
        os.kill(process, signal.SIGKILL)
        with pytest.raises(StageError, match=r"parse: the parser process died \(SIGKILL\)"):
            await parsing
    await assert_parses(parser, good)
    assert process not in children()


async def test_close_ends_a_parse_under_way(make_parser: MakeParser, stalled: ParseRequest) -> None:
    parser = make_parser()
    before = children()
    async with parsing_under_way(parser, stalled) as parsing:
        parser.close()
        with pytest.raises(StageError, match=r"parse: the parser process died \(closed\)"):
            await parsing
    assert children() == before


async def test_document_that_takes_too_long_fails_alone(
    make_parser: MakeParser, good: ParseRequest, stalled: ParseRequest
) -> None:
    parser = make_parser(timeout_s=20)
    before = children()
    with pytest.raises(StageError, match="parse: took longer than 20 s"):
        await parser.parse(stalled)
    assert children() == before  # the one that hung is gone
    await assert_parses(parser, good)


async def test_document_that_eats_memory_fails_alone(
    make_parser: MakeParser, stalled: ParseRequest
) -> None:
    """Behaviour 26."""
    parser = make_parser(memory_bytes=1 << 20)  # less than the interpreter alone
    before = children()
    with pytest.raises(StageError, match="parse: took more than 1 MiB of memory"):
        await parser.parse(stalled)
    assert children() == before


async def test_parser_that_never_pauses_is_watched_too(
    make_parser: MakeParser, tmp_path: Path
) -> None:
    """Behaviour 26: pages come faster than anyone looks, so each answer is an occasion."""
    file = tmp_path / "pages.pdf"
    write_pages(file, 3)

    class Late(Kept):
        async def keep(self, sha256: str, pages: Sequence[RawPage]) -> None:
            await super().keep(sha256, pages)
            parser._spec = replace(parser._spec, memory_bytes=1)

    parser = make_parser()
    with pytest.raises(StageError, match="parse: took more than 0 MiB of memory"):
        await parser.parse(request_for(file), Late())


async def test_time_that_the_ledger_takes_is_not_the_documents(
    make_parser: MakeParser, good: ParseRequest
) -> None:
    class Slow(Kept):
        async def finished(self, sha256: str) -> Mapping[int, RawPage]:
            await asyncio.sleep(timeout_s)
            return {}

    parser = make_parser()
    await assert_parses(parser, good)  # the imports are behind it
    timeout_s = 3.0
    parser._spec = replace(parser._spec, timeout_s=timeout_s)
    result = await parser.parse(good, Slow())
    assert result.chunks


async def test_worn_process_is_replaced_before_the_next_document(
    make_parser: MakeParser, good: ParseRequest
) -> None:
    """Behaviour 26: an innocent document does not pay for what others left in memory."""
    parser = make_parser()
    before = children()
    await assert_parses(parser, good)
    [first] = children() - before
    await assert_parses(parser, good)
    assert children() - before == {first}
    used_bytes = psutil.Process(first).memory_info().rss
    parser._spec = replace(parser._spec, memory_bytes=int(used_bytes * 1.2))
    await assert_parses(parser, good)
    [second] = children() - before
    assert second != first


async def test_pages_are_kept_as_they_are_read_and_none_is_read_twice(
    make_parser: MakeParser, tmp_path: Path
) -> None:
    """Behaviour 21."""
    file = tmp_path / "three.pdf"
    write_pages(file, 3)
    parser, kept = make_parser(), Kept()
    first = await parser.parse(request_for(file), kept)
    assert sorted(kept.told) == [1, 2, 3]
    del kept.pages[2]
    kept.told.clear()
    second = await parser.parse(request_for(file), kept)
    assert kept.told == [2]
    assert second.chunks == first.chunks
